/* offline_tell.h - one thing that a verb has found, as a line: key=value, or JSON with --json. */
#ifndef CLI_OFFLINE_TELL_H
#define CLI_OFFLINE_TELL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"

struct fact {
    const char *key;
    enum { FACT_STR, FACT_I64, FACT_U64, FACT_BOOL, FACT_HEX } kind;
    const char *str;
    int64_t i64;
    uint64_t u64;
    struct view bytes;
};

#define SAY_STR(k, v)  ((struct fact){.key = (k), .kind = FACT_STR, .str = (v)})
#define SAY_I64(k, v)  ((struct fact){.key = (k), .kind = FACT_I64, .i64 = (v)})
#define SAY_U64(k, v)  ((struct fact){.key = (k), .kind = FACT_U64, .u64 = (v)})
#define SAY_BOOL(k, v) ((struct fact){.key = (k), .kind = FACT_BOOL, .u64 = (v)})
#define SAY_HEX(k, v)  ((struct fact){.key = (k), .kind = FACT_HEX, .bytes = (v)})

/* "what key=value ...", or {"what": ..., "key": value, ...} */
#define offline_tell(json, what, ...) \
    offline_say(json, what, (const struct fact[]){__VA_ARGS__, {0}})
void offline_say(bool json, const char *what, const struct fact *facts);

#endif
