/* sink.h - what a sink's three threads share: a ring and how far each has come in it.
 *
 *   received -> [journal: write, sync] -> flushed -> [entry log: 1 MiB writes] -> logged
 */
#ifndef BENCH_CEILING_SINK_H
#define BENCH_CEILING_SINK_H

#include "bench/ceiling/ring.h"

/* Where a thread waits for more; whoever brings it writes only if the thread does wait. */
struct bell {
    int fd;
    _Atomic bool waiting;
};
void bell_open(struct bell *b);
void bell_ring(struct bell *b);
/* Waits unless *position is past `seen` + `least` - 1. */
void bell_wait(struct bell *b, const _Atomic uint64_t *position, uint64_t seen, uint64_t least);

struct sink {
    const struct options *o;
    unsigned number;
    struct ring ring;
    _Atomic uint64_t received, flushed, logged;
    struct bell to_journal, to_log;
    int to_loop; /* eventfd */
    int journal_fd, log_fd;
    _Atomic uint64_t flushes;
};

void sink_disk_start(struct sink *s); /* makes the files, if they are not there; then the threads */

#endif
