/* http_inquiry.h - an HTTP answer that is made from several things in the metadata store.
 *
 *   questions, one after the other: a key, or all keys of a prefix, page by page
 *     -> take() each item that is there -> finish() answers the request
 *
 * Memory:  an inquiry ends itself; its answer, too, unless finish() took it.
 * Threads: the server's loop.
 */
#ifndef BOOKIE_HTTP_INQUIRY_H
#define BOOKIE_HTTP_INQUIRY_H

#include "bookie/http_inside.h"
#include "metadata/metadata.h"

struct inquiry;

struct question {
    const char *key;
    enum { ASK_KEY, ASK_KEYS, ASK_VALUES } ask; /* the last two of all that begin with key */
    void (*take)(struct inquiry *q, const struct meta_item *item);
};

struct inquiry {
    struct http_admin *admin;
    struct http_request *request;
    struct json_object *answer;
    const struct question *questions;
    unsigned n, at;
    void (*finish)(struct inquiry *q); /* answers q->request */
    uint64_t counts[6];                /* what the questions count */
    int64_t from, to;                  /* which items are wanted */
    char key[META_KEY_MAX];            /* of a question that was made for this request */
    struct question own;
    struct meta_call call; /* private */
};

/* questions are static, or q->own. */
struct inquiry *inquiry_new(struct http_admin *a, struct http_request *r);
void inquiry_ask(struct inquiry *q, const struct question *questions, unsigned n,
                 void (*finish)(struct inquiry *q));
void inquiry_put(struct inquiry *q, const char *key, struct slice value); /* then finish() */
void inquiry_remove(struct inquiry *q, const char *key);                  /* the same */
void inquiry_refuse(struct inquiry *q, const char *why); /* 400; instead of the three above */
void inquiry_reply(struct inquiry *q);                   /* for finish(): 200 with q->answer */
struct json_object *http_auditor(struct slice vote); /* gives: whom the key PATH_AUDITOR names */

#endif
