/* inn.h - one broker and one bookie in this process, over metadata in memory. */
#ifndef TESTS_UNIT_BROKER_SESSION_INN_H
#define TESTS_UNIT_BROKER_SESSION_INN_H

#include "bookie/bookie.h"
#include "broker/broker.h"
#include "metadata/metadata.h"

struct inn {
    char dir[256];
    struct metadata *meta;
    struct loops loops;
    struct bookie_conf bookie_conf;
    struct bookie *bookie;
    struct broker_conf conf;
    const struct authorizer *authorizer; /* NULL: everybody may do everything */
    struct broker *broker;
};

struct inn *inn_new(void);                          /* gives: settings only */
void inn_set(struct inn *i, const char *key_value); /* of the broker */
void inn_open(struct inn *i);
void inn_stop_broker(struct inn *i);
void inn_start_broker(struct inn *i);
void inn_stop_bookie(struct inn *i);
void inn_start_bookie(struct inn *i);
void inn_drop(struct inn **i);

/* Gives what HTTP says to GET path, headers and all. */
char *inn_get(const struct inn *i, const char *path);
/* A metric of the broker, or -1. */
long long inn_metric(const struct inn *i, const char *name);

#endif
