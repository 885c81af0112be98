/* perf_meter.h - what `lgm perf` counts: messages, bytes and times, a second's and all.
 *
 *   begin -> note .. -> line (once an interval) .. -> [warm: forget it all] -> end -> summary
 */
#ifndef CLI_PERF_METER_H
#define CLI_PERF_METER_H

#include <stdint.h>
#include <sys/resource.h>

#include "cli/perf_options.h"
#include "common/percentiles.h"

struct perf_count {
    uint64_t messages, bytes, failed;
    uint64_t since_us;
};

struct perf_meter {
    struct perf_count interval, all; /* all: since the warm-up */
    struct percentiles interval_times, times;
    uint64_t ever;     /* messages, those of the warm-up and after the end too */
    uint64_t ended_us; /* 0: still going */
    struct rusage usage;
};

void perf_meter_init(struct perf_meter *m);
void perf_meter_drop(struct perf_meter *m);
void perf_meter_begin(struct perf_meter *m, uint64_t now_us); /* and again when it is warm */
void perf_meter_note(struct perf_meter *m, uint64_t bytes, uint64_t took_us);
void perf_meter_failed(struct perf_meter *m);
/* Times that are noted afterwards still count, messages do not. */
void perf_meter_end(struct perf_meter *m, uint64_t now_us);

void perf_meter_line(struct perf_meter *m, uint64_t now_us, uint64_t outstanding);
/* Prints it as the last line, and into the file that --json names. 0, or an exit code. */
int perf_meter_summary(struct perf_meter *m, const struct perf_options *o, uint64_t outstanding,
                       const char *times_since);

#endif
