#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "bench/ceiling/ring.h"
#include "bench/ceiling/wire.h"
#include "common/mem.h"

enum {
    TAG_PRODUCER = SINKS,
    TAG_CONSUMER,
    PIECES = 65536, /* waiting for a sink, in runs of entries */
    PIECE_MAX = 4 << 20,
    IOV_MAX_HERE = 512,
    IN_FLIGHT = 1 << 18,
    RECEIPTS = 65536,
    ACK_BYTES = 65536,
};

/* What a sink is still to get, in order: runs of the ring. */
struct peer {
    int fd;
    bool blocked;
    struct iovec pieces[PIECES];
    uint64_t ends[PIECES]; /* positions */
    uint32_t head, tail;
    uint8_t acks[ACK_BYTES];
    size_t ack_bytes;
};

struct receipt {
    uint64_t id, ignored; /* as large as a receipt is at least */
};

struct relay {
    const struct options *o;
    struct account *account;
    struct ring ring;
    int epoll, producer, consumer;
    struct peer *sinks[SINKS];
    uint64_t begins[IN_FLIGHT]; /* position of an entry */
    uint8_t acks[IN_FLIGHT];
    uint64_t next, confirmed; /* entries */
    uint64_t handed_out;      /* position, to the consumer */
    bool consumer_blocked, paused, producer_gone;
    struct receipt receipts[RECEIPTS];
};

/* ---- sinks ----------------------------------------------------------------------------------- */

static void take_acks(struct relay *r, struct peer *p)
{
    ssize_t n = recv(p->fd, p->acks + p->ack_bytes, sizeof p->acks - p->ack_bytes, 0);
    if (n == 0)
        account_close(r->account);
    if (n < 0)
        return;
    p->ack_bytes += (size_t)n;
    size_t whole = p->ack_bytes / sizeof(uint64_t);
    for (size_t i = 0; i < whole; i++) {
        uint64_t id;
        memcpy(&id, p->acks + i * sizeof id, sizeof id);
        r->acks[id % IN_FLIGHT]++;
    }
    p->ack_bytes -= whole * sizeof(uint64_t);
    memmove(p->acks, p->acks + whole * sizeof(uint64_t), p->ack_bytes);
}

/* Neighbours in the ring become one piece; not into the first, which may be half sent. */
static void queue(struct peer *p, uint8_t *at, uint64_t len, uint64_t end)
{
    uint32_t last = (p->tail - 1) % PIECES;
    if (p->tail - p->head > 1 &&
        (uint8_t *)p->pieces[last].iov_base + p->pieces[last].iov_len == at &&
        p->pieces[last].iov_len < PIECE_MAX) {
        p->pieces[last].iov_len += len;
        p->ends[last] = end;
        return;
    }
    if (p->tail - p->head >= PIECES - 1)
        die("too much waits for a sink");
    p->pieces[p->tail % PIECES] = (struct iovec){.iov_base = at, .iov_len = len};
    p->ends[p->tail % PIECES] = end;
    p->tail++;
}

static void sent(struct peer *p, size_t n)
{
    while (n > 0) {
        struct iovec *v = &p->pieces[p->head % PIECES];
        if (n < v->iov_len) {
            v->iov_base = (uint8_t *)v->iov_base + n;
            v->iov_len -= n;
            return;
        }
        n -= v->iov_len;
        p->head++;
    }
}

static void write_out(struct relay *r, unsigned i)
{
    struct peer *p = r->sinks[i];
    while (!p->blocked && p->head != p->tail) {
        uint32_t first = p->head % PIECES, n = p->tail - p->head;
        n = n > IOV_MAX_HERE ? IOV_MAX_HERE : n;
        n = first + n > PIECES ? PIECES - first : n;
        ssize_t done = writev(p->fd, &p->pieces[first], (int)n);
        if (done < 0) {
            p->blocked = true;
            wire_change(r->epoll, p->fd, i, EPOLLIN | EPOLLOUT);
            return;
        }
        sent(p, (size_t)done);
    }
}

static uint64_t first_unsent(const struct relay *r, const struct peer *p)
{
    uint32_t at = p->head % PIECES;
    return p->head == p->tail ? r->ring.parsed : p->ends[at] - p->pieces[at].iov_len;
}

/* ---- producer and consumer ------------------------------------------------------------------- */

static void confirm(struct relay *r)
{
    size_t n = 0;
    while (r->confirmed < r->next && n < RECEIPTS &&
           r->acks[r->confirmed % IN_FLIGHT] >= r->o->ack_quorum)
        r->receipts[n++].id = r->confirmed++;
    if (n > 0)
        (void)wire_send_all(r->producer, r->receipts, n * sizeof *r->receipts);
}

static void hand_out(struct relay *r)
{
    uint64_t upto = r->confirmed < r->next ? r->begins[r->confirmed % IN_FLIGHT] : r->ring.parsed;
    if (!r->o->consumer)
        r->handed_out = upto;
    while (r->handed_out < upto && !r->consumer_blocked) {
        uint64_t n = upto - r->handed_out;
        n = n > RECEIVE_MAX ? RECEIVE_MAX : n;
        ssize_t done = send(r->consumer, ring_at(&r->ring, r->handed_out), n, MSG_NOSIGNAL);
        if (done > 0) {
            r->handed_out += (uint64_t)done;
        } else {
            r->consumer_blocked = true;
            wire_change(r->epoll, r->consumer, TAG_CONSUMER, EPOLLOUT);
        }
    }
}

static bool has_room(const struct relay *r)
{
    uint64_t oldest = r->handed_out;
    for (unsigned i = 0; i < SINKS; i++) {
        uint64_t unsent = first_unsent(r, r->sinks[i]);
        oldest = unsent < oldest ? unsent : oldest;
    }
    return r->ring.received - oldest + 2 * (uint64_t)RECEIVE_MAX <= RING_BYTES &&
           r->next - r->confirmed < IN_FLIGHT - RECEIPTS;
}

static void producer_ends(struct relay *r)
{
    r->producer_gone = true;
    wire_change(r->epoll, r->producer, TAG_PRODUCER, 0);
    for (unsigned i = 0; i < SINKS; i++)
        shutdown(r->sinks[i]->fd, SHUT_WR);
    if (r->o->consumer)
        shutdown(r->consumer, SHUT_WR);
}

static void spread(struct relay *r, struct entry_head *h, uint64_t begin)
{
    h->id = r->next;
    r->begins[r->next % IN_FLIGHT] = begin;
    r->acks[r->next % IN_FLIGHT] = 0;
    for (uint64_t q = 0; q < r->o->write_quorum; q++)
        queue(r->sinks[(r->next + q) % SINKS], (uint8_t *)h, entry_bytes(h), r->ring.parsed);
    r->next++;
}

static void receive(struct relay *r)
{
    struct entry_head *h;
    uint64_t begin, entries = 0;
    if (r->producer_gone)
        return;
    if (!has_room(r)) {
        if (!r->paused)
            wire_change(r->epoll, r->producer, TAG_PRODUCER, 0);
        r->paused = true;
        return;
    }
    if (r->paused)
        wire_change(r->epoll, r->producer, TAG_PRODUCER, EPOLLIN);
    r->paused = false;
    if (ring_receive(&r->ring, r->producer) == 0)
        producer_ends(r);
    for (begin = r->ring.parsed; (h = ring_next(&r->ring)); begin = r->ring.parsed, entries++)
        spread(r, h, begin);
    account_note(r->account, entries);
}

/* ---- the life -------------------------------------------------------------------------------- */

static void connect_all(struct relay *r, int for_producer, int for_consumer, const uint16_t *ports)
{
    for (unsigned i = 0; i < SINKS; i++) {
        r->sinks[i] = mem_new(struct peer);
        r->sinks[i]->fd = wire_connect(ports[i]);
        wire_tune(r->sinks[i]->fd, false);
        wire_watch(r->epoll, r->sinks[i]->fd, i, EPOLLIN);
    }
    account_ready(r->account);
    r->producer = wire_accept(for_producer);
    wire_tune(r->producer, false);
    wire_watch(r->epoll, r->producer, TAG_PRODUCER, EPOLLIN);
    if (!r->o->consumer)
        return;
    r->consumer = wire_accept(for_consumer);
    wire_tune(r->consumer, false);
    wire_watch(r->epoll, r->consumer, TAG_CONSUMER, 0);
}

static void on_event(struct relay *r, const struct epoll_event *e)
{
    if (e->data.u32 == TAG_CONSUMER && e->events & EPOLLOUT) {
        r->consumer_blocked = false;
        wire_change(r->epoll, r->consumer, TAG_CONSUMER, 0);
    } else if (e->data.u32 < SINKS) {
        struct peer *p = r->sinks[e->data.u32];
        if (e->events & EPOLLOUT) {
            p->blocked = false;
            wire_change(r->epoll, p->fd, e->data.u32, EPOLLIN);
        }
        if (e->events & (EPOLLIN | EPOLLHUP))
            take_acks(r, p);
    }
}

void relay_run(const struct options *o, struct account *a, int for_producer, int for_consumer,
               const uint16_t *sink_ports)
{
    struct epoll_event events[8];
    struct relay *r = mem_new(struct relay);
    r->o = o;
    r->account = a;
    ring_open(&r->ring);
    r->epoll = epoll_create1(0);
    connect_all(r, for_producer, for_consumer, sink_ports);
    for (;;) {
        int n = epoll_wait(r->epoll, events, 8, -1);
        bool from_producer = r->paused;
        for (int i = 0; i < n; i++) {
            on_event(r, &events[i]);
            from_producer |= events[i].data.u32 == TAG_PRODUCER;
        }
        confirm(r);
        hand_out(r);
        if (from_producer)
            receive(r);
        for (unsigned i = 0; i < SINKS; i++)
            write_out(r, i);
    }
}
