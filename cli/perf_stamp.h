/* perf_stamp.h - the first 16 bytes of what `lgm perf produce` writes: when it was due.
 *
 * The protocol's publish time has milliseconds; this one has microseconds, and a message that had
 * to wait before it could be sent is as old as it is.
 */
#ifndef CLI_PERF_STAMP_H
#define CLI_PERF_STAMP_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "common/buf.h"

enum { PERF_STAMP_BYTES = 16 };
#define PERF_STAMP_MAGIC "lgm-perf"

static inline uint64_t perf_wall_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static inline void perf_stamp_write(void *to, uint64_t wall_us)
{
    memcpy(to, PERF_STAMP_MAGIC, 8);
    memcpy((char *)to + 8, &wall_us, sizeof wall_us);
}

static inline bool perf_stamp_read(struct view payload, uint64_t *wall_us)
{
    if (payload.len < PERF_STAMP_BYTES || memcmp(payload.base, PERF_STAMP_MAGIC, 8) != 0)
        return false;
    memcpy(wall_us, payload.base + 8, sizeof *wall_us);
    return true;
}

#endif
