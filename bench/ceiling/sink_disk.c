#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "bench/ceiling/sink.h"

#define FILE_BYTES  ((uint64_t)512 << 20)
#define JOURNAL_MAX ((uint64_t)4 << 20) /* in a write */
#define LOG_BYTES   ((uint64_t)1 << 20)
#define PAGE_MASK   ((uint64_t)4095)

void bell_open(struct bell *b)
{
    b->fd = eventfd(0, 0);
    if (b->fd < 0)
        die("eventfd");
}

void bell_ring(struct bell *b)
{
    if (atomic_load(&b->waiting) && eventfd_write(b->fd, 1) != 0)
        die("eventfd");
}

void bell_wait(struct bell *b, const _Atomic uint64_t *position, uint64_t seen, uint64_t least)
{
    eventfd_t ignored;
    atomic_store(&b->waiting, true);
    if (atomic_load(position) - seen < least)
        (void)eventfd_read(b->fd, &ignored);
    atomic_store(&b->waiting, false);
}

/* Written once in full before, so that a write changes no metadata. */
static int recycled_file(const struct sink *s, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s-%u", s->o->dir, name, s->number);
    int fd = open(path, O_RDWR | O_CREAT, 0644);
    if (fd < 0)
        die(path);
    if (lseek(fd, 0, SEEK_END) < (off_t)FILE_BYTES) {
        for (uint64_t at = 0; at < FILE_BYTES; at += LOG_BYTES)
            if (pwrite(fd, s->ring.base, LOG_BYTES, (off_t)at) != (ssize_t)LOG_BYTES)
                die(path);
        if (fsync(fd) != 0)
            die(path);
    }
    close(fd);
    fd = open(path, O_RDWR | O_DIRECT);
    if (fd < 0)
        die(path);
    return fd;
}

static void tell_loop(const struct sink *s)
{
    if (eventfd_write(s->to_loop, 1) != 0)
        die("eventfd");
}

/* Whatever has come while the last group was synced is the next group. */
static void *journal(void *arg)
{
    struct sink *s = arg;
    const int fd = s->journal_fd;
    for (;;) {
        uint64_t from = atomic_load(&s->flushed), to = atomic_load(&s->received);
        if (to == from) {
            bell_wait(&s->to_journal, &s->received, from, 1);
            continue;
        }
        if (to - from > JOURNAL_MAX)
            to = from + JOURNAL_MAX;
        uint64_t first = from & ~PAGE_MASK, last = (to + PAGE_MASK) & ~PAGE_MASK;
        uint64_t at = first % FILE_BYTES, n = last - first;
        if (at + n > FILE_BYTES) {
            n = FILE_BYTES - at;
            to = first + n;
        }
        if (pwrite(fd, ring_at(&s->ring, first), n, (off_t)at) != (ssize_t)n || fdatasync(fd) != 0)
            die("journal");
        s->flushes++;
        atomic_store(&s->flushed, to);
        tell_loop(s);
        bell_ring(&s->to_log);
    }
    return NULL;
}

static void *entry_log(void *arg)
{
    struct sink *s = arg;
    const int fd = s->log_fd;
    for (;;) {
        uint64_t from = atomic_load(&s->logged);
        if (atomic_load(&s->flushed) - from < LOG_BYTES) {
            bell_wait(&s->to_log, &s->flushed, from, LOG_BYTES);
            continue;
        }
        if (pwrite(fd, ring_at(&s->ring, from), LOG_BYTES, (off_t)(from % FILE_BYTES)) !=
            (ssize_t)LOG_BYTES)
            die("entry log");
        atomic_store(&s->logged, from + LOG_BYTES);
        tell_loop(s);
    }
    return NULL;
}

void sink_disk_start(struct sink *s)
{
    pthread_t ignored;
    bell_open(&s->to_journal);
    bell_open(&s->to_log);
    s->journal_fd = recycled_file(s, "journal");
    s->log_fd = s->o->entry_log ? recycled_file(s, "log") : -1;
    if (pthread_create(&ignored, NULL, journal, s) != 0 ||
        (s->o->entry_log && pthread_create(&ignored, NULL, entry_log, s) != 0))
        die("thread");
}
