/* log_usage.h - how many bytes of which ledger lie in an entry log.
 *
 * Filled in the order of writing, where a ledger's entries stand together and a flush brings all
 * ledgers again: added up when it would grow, and when it is asked for.
 */
#ifndef BOOKIE_LOG_USAGE_H
#define BOOKIE_LOG_USAGE_H

#include <stddef.h>
#include <stdint.h>

struct ledger_usage {
    int64_t ledger;
    uint64_t bytes; /* of records, their heads with them */
};

struct log_usage {
    struct ledger_usage *at; /* after log_usage_sort(): by ledger, each once */
    size_t n, room;
};

void log_usage_add(struct log_usage *u, int64_t ledger, uint64_t bytes);
void log_usage_take(struct log_usage *u, int64_t ledger, uint64_t bytes); /* off; never below 0 */
void log_usage_sort(struct log_usage *u);
uint64_t log_usage_bytes(const struct log_usage *u);
void log_usage_clear(struct log_usage *u); /* keeps its memory */
void log_usage_end(struct log_usage *u);

#endif
