#include "broker/broker.h"

#include <stddef.h>

/* A key of upstream's that is no setting here: upstream.def. */
#define NO_SETTING(key, kind, value, why) \
    {.name = key, .type = CONFIG_STRING, .class = CONFIG_##kind, .preset = value, .what = why},
#define REFUSED(key, value, why) NO_SETTING(key, REFUSED, value, why)
#define ABSENT(key, value, why)  NO_SETTING(key, ABSENT, value, why)
#define IGNORED(key, value, why) NO_SETTING(key, IGNORED, value, why)

static const struct config_key keys[] = {
#define X(key, member, kind, def, least, most, when, text) \
    {.name = #key,                                         \
     .type = CONFIG_##kind,                                \
     .class = CONFIG_##when,                               \
     .offset = offsetof(struct broker_conf, member),       \
     .preset = def,                                        \
     .min = least,                                         \
     .max = most,                                          \
     .what = text},
#include "broker/config.def"
#undef X
#include "broker/upstream.def"
};

const struct config_table broker_config_table = {
    .keys = keys,
    .n = sizeof(keys) / sizeof(keys[0]),
};
