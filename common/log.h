/* log.h - one line an event: a greppable name and fields, never prose.
 *
 *   log_event(LOG_WARN, "ledger.failed", F_I64("ledger", id), F_ERR(err));
 *   2026-11-30T12:00:00.123Z WARN ledger.failed ledger=12 err=TIMEOUT thread=io-0
 *
 * Names are noun.past_participle and constants in the source: docs and tests quote
 * them.  Goes to standard error; key=value by default, JSON on request.
 *
 * Threads: any; a line is one write.
 */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log_field {
    const char *key;
    enum { LOG_STR, LOG_I64, LOG_U64, LOG_F64, LOG_ERRNO } kind;
    const char *str;
    int64_t i64;
    uint64_t u64;
    double f64;
};

#define F_STR(k, v) ((struct log_field){.key = (k), .kind = LOG_STR, .str = (v)})
#define F_I64(k, v) ((struct log_field){.key = (k), .kind = LOG_I64, .i64 = (int64_t)(v)})
#define F_U64(k, v) ((struct log_field){.key = (k), .kind = LOG_U64, .u64 = (uint64_t)(v)})
#define F_F64(k, v) ((struct log_field){.key = (k), .kind = LOG_F64, .f64 = (v)})
#define F_ERR(e)    F_STR("err", err_name(e))
#define F_ERRNO(n)  ((struct log_field){.key = "errno", .kind = LOG_ERRNO, .i64 = (n)})

#define log_event(level, name, ...) \
    log_write(level, name, (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){0}})

void log_write(enum log_level level, const char *name, const struct log_field *fields);
void log_set_level(enum log_level least);
enum log_level log_level_now(void);
void log_set_json(bool json);
const char *log_level_name(enum log_level level);         /* "debug" ... */
bool log_level_of(const char *text, enum log_level *out); /* "debug" "info" "warn" "error" */

#endif
