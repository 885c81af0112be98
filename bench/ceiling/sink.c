#include "bench/ceiling/sink.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "bench/ceiling/wire.h"

enum { TAG_RELAY, TAG_DISK, ACKS_MAX = 65536 };

struct sink_loop {
    struct sink sink;
    struct account *account;
    int epoll, relay;
    bool paused;    /* the ring is full of what is not on disk */
    uint64_t acked; /* position */
    uint64_t ids[ACKS_MAX];
    uint64_t flushes_before, flushed_before;
    bool counting;
};

static uint64_t reusable(const struct sink *s)
{
    if (!s->o->disk)
        return s->ring.parsed;
    return s->o->entry_log ? atomic_load(&s->logged) : atomic_load(&s->flushed);
}

static void end(struct sink_loop *l)
{
    l->account->result->flushes = atomic_load(&l->sink.flushes) - l->flushes_before;
    l->account->result->flushed = atomic_load(&l->sink.flushed) - l->flushed_before;
    account_close(l->account);
}

static void count(struct sink_loop *l, uint64_t entries)
{
    account_note(l->account, entries);
    if (l->account->is_warm && !l->counting) {
        l->counting = true;
        l->flushes_before = atomic_load(&l->sink.flushes);
        l->flushed_before = atomic_load(&l->sink.flushed);
    }
}

static void receive(struct sink_loop *l)
{
    struct sink *s = &l->sink;
    uint64_t entries = 0;
    if (s->ring.received - reusable(s) + 2 * (uint64_t)RECEIVE_MAX > RING_BYTES) {
        if (!l->paused)
            wire_change(l->epoll, l->relay, TAG_RELAY, 0);
        l->paused = true;
        return;
    }
    if (l->paused)
        wire_change(l->epoll, l->relay, TAG_RELAY, EPOLLIN);
    l->paused = false;
    if (ring_receive(&s->ring, l->relay) == 0)
        end(l);
    while (ring_next(&s->ring))
        entries++;
    if (entries == 0)
        return;
    count(l, entries);
    atomic_store(&s->received, s->ring.parsed);
    if (s->o->disk)
        bell_ring(&s->to_journal);
}

static void acknowledge(struct sink_loop *l)
{
    const struct sink *s = &l->sink;
    uint64_t safe = s->o->disk ? atomic_load(&s->flushed) : s->ring.parsed;
    size_t n = 0;
    while (l->acked < safe && n < ACKS_MAX) {
        const struct entry_head *h = ring_entry(&s->ring, l->acked);
        if (l->acked + entry_bytes(h) > safe)
            break;
        l->ids[n++] = h->id;
        l->acked += entry_bytes(h);
    }
    if (n > 0 && !wire_send_all(l->relay, l->ids, n * sizeof *l->ids))
        end(l);
}

void sink_run(const struct options *o, struct account *a, unsigned number, int listener)
{
    static struct sink_loop l;
    struct epoll_event events[2];
    eventfd_t ignored;

    l.sink.o = o;
    l.sink.number = number;
    l.account = a;
    ring_open(&l.sink.ring);
    l.sink.to_loop = eventfd(0, EFD_NONBLOCK);
    if (o->disk)
        sink_disk_start(&l.sink);
    l.relay = wire_accept(listener);
    wire_tune(l.relay, false);
    account_ready(a);
    l.epoll = epoll_create1(0);
    wire_watch(l.epoll, l.relay, TAG_RELAY, EPOLLIN);
    wire_watch(l.epoll, l.sink.to_loop, TAG_DISK, EPOLLIN);
    for (;;) {
        int n = epoll_wait(l.epoll, events, 2, -1);
        for (int i = 0; i < n; i++)
            if (events[i].data.u32 == TAG_DISK)
                (void)eventfd_read(l.sink.to_loop, &ignored);
        receive(&l);
        acknowledge(&l);
    }
}
