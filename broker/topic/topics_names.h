/* topics_names.h - the names of topics that this broker has loaded, on whichever loop.
 *
 *   home -> loop 0: walk -> loop 1: walk -> .. -> home: done()
 *
 * What is in no metadata is found so: non-persistent topics are where they are loaded, and nowhere
 * else.
 *
 * Memory:  the call is the caller's and stays put until done(), its prefix too; names are given.
 * Threads: topics_names() on `home`, done() too, not in the caller's stack.
 * Limits:  max_bytes of names, then ERR_TOO_BIG.
 */
#ifndef BROKER_TOPIC_TOPICS_NAMES_H
#define BROKER_TOPIC_TOPICS_NAMES_H

#include "broker/topic/topics.h"

struct topics_names_call {
    const struct topics_map *map;
    struct loop *home;
    const char *prefix; /* of full names: "non-persistent://tenant/namespace/" */
    size_t max_bytes;
    void (*done)(struct topics_names_call *c, enum err err);
    char **names; /* in no order; topics_names_drop() */
    size_t n;

    size_t room, bytes; /* private, as the rest */
    unsigned loop;
    enum err err;
    struct task task;
    struct topics_walk walk;
};

void topics_names(struct topics_names_call *c);
void topics_names_drop(struct topics_names_call *c);

#endif
