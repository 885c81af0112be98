/* log_limit.h - at most so many lines a second of one event; those left out are counted.
 *
 * Zeroed memory is a limit that nothing has passed yet.
 *
 * Threads: any.
 */
#ifndef COMMON_LOG_LIMIT_H
#define COMMON_LOG_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct log_limit {
    _Atomic uint64_t second;
    _Atomic uint64_t told, left_out;
};

/* May one more line be written?  *left_out: those that were not since the last one that was. */
bool log_limit_pass(struct log_limit *l, unsigned a_second, uint64_t now_us, uint64_t *left_out);

#endif
