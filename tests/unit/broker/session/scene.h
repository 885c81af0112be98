/* scene.h - what these tests begin with: a broker, a bookie, and one client that is connected. */
#ifndef TESTS_UNIT_BROKER_SESSION_SCENE_H
#define TESTS_UNIT_BROKER_SESSION_SCENE_H

#include "tests/unit/broker/session/inn.h"
#include "tests/unit/broker/session/raw.h"

static struct inn *inn;
static struct raw *r;

static inline void begin_with(const char *setting)
{
    inn = inn_new();
    if (setting)
        inn_set(inn, setting);
    inn_open(inn);
    r = raw_connect(broker_port(inn->broker));
}

static inline void begin(void)
{
    begin_with(NULL);
}

static inline struct raw *another(void)
{
    return raw_connect(broker_port(inn->broker));
}

static inline void finish(void)
{
    if (r)
        raw_drop(&r);
    inn_drop(&inn);
}

#endif
