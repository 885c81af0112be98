/* reply.h - an answer on its way from a store's thread to the loop that asked.
 *
 *   answer_new -> fill .reply, answer_item ... -> answer_post --loop_post--> call->done()
 *
 * Memory:  an answer owns its value, its items and their keys until done() has returned.
 * Threads: one at a time until answer_post(); then the home loop's.
 */
#ifndef METADATA_REPLY_H
#define METADATA_REPLY_H

#include "metadata/metadata.h"

struct answer {
    struct task task;
    struct meta_call *call;
    struct meta_reply reply;
    struct meta_item *items;
    size_t room;
};

struct answer *answer_new(struct meta_call *c); /* gives */
void answer_item(struct answer *a, const char *key, struct slice value,
                 int64_t version);   /* copies key, takes value */
void answer_clear(struct answer *a); /* forgets value and items */
void answer_post(struct answer *a);  /* takes */
void answer_error(struct meta_call *c, enum err e);
void meta_note(const struct meta_call *c, enum err err); /* it has its answer: metadata.c */

#endif
