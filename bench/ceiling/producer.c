#define PRODUCER_AHEAD ((uint64_t)256 << 10) /* bytes made before they are written */

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "bench/ceiling/ring.h"
#include "bench/ceiling/wire.h"
#include "common/crc32c.h"
#include "common/mem.h"
#include "common/rng.h"

enum { IN_FLIGHT = 1 << 18, RECEIPT_BYTES = 16, READ_BYTES = 65536, IDLE_NS = 100 * 1000 * 1000 };
#define SECOND_NS 1e9

struct producer {
    const struct options *o;
    struct account *account;
    struct ring ring; /* received: how far entries are made */
    int relay;
    uint8_t *message;
    uint64_t written;         /* position */
    uint64_t made, confirmed; /* entries */
    uint64_t due_ns[IN_FLIGHT];
    uint8_t receipts[READ_BYTES];
    size_t receipt_bytes;
    uint64_t began_ns, warm_ns, end_ns;
    uint64_t warm_since_ns, confirmed_before;
    bool is_warm, is_over;
    struct percentiles times; /* us */
};

static uint64_t next_due(const struct producer *p, uint64_t now)
{
    if (p->o->rate <= 0)
        return now;
    return p->began_ns + (uint64_t)((double)p->made * SECOND_NS / p->o->rate);
}

static bool may_make(const struct producer *p)
{
    return !p->is_over && p->made - p->confirmed < p->o->window &&
           p->ring.received - p->written < RING_BYTES / 2;
}

/* The messages of a batch are copied one by one behind 8 bytes each, as a client does. */
static void make(struct producer *p, uint64_t due)
{
    struct entry_head *h = ring_entry(&p->ring, p->ring.received);
    uint8_t *at = (uint8_t *)(h + 1);
    for (uint64_t i = 0; i < p->o->batch; i++) {
        const uint32_t front[2] = {(uint32_t)p->o->size, (uint32_t)i};
        memcpy(at, front, sizeof front);
        memcpy(at + sizeof front, p->message, p->o->size);
        at += sizeof front + p->o->size;
    }
    h->len = (uint32_t)(at - (uint8_t *)(h + 1));
    h->crc = crc32c(h + 1, h->len);
    h->id = p->made;
    h->due_ns = due;
    p->due_ns[p->made % IN_FLIGHT] = due;
    p->made++;
    p->ring.received += entry_bytes(h);
    account_note(p->account, 1);
}

/* Gives how long until the next is due; 0: it may be now. */
static uint64_t make_some(struct producer *p)
{
    while (may_make(p) && p->ring.received - p->written <= PRODUCER_AHEAD) {
        uint64_t now = now_ns(), due = next_due(p, now);
        if (due > now)
            return due - now;
        make(p, due);
    }
    return p->o->rate > 0 || !may_make(p) ? IDLE_NS : 0;
}

static bool write_some(struct producer *p)
{
    if (p->written == p->ring.received)
        return false;
    ssize_t n =
        send(p->relay, ring_at(&p->ring, p->written), p->ring.received - p->written, MSG_NOSIGNAL);
    if (n > 0)
        p->written += (uint64_t)n;
    return n > 0;
}

static void read_receipts(struct producer *p)
{
    ssize_t n =
        recv(p->relay, p->receipts + p->receipt_bytes, sizeof p->receipts - p->receipt_bytes, 0);
    uint64_t now = now_ns();
    if (n == 0)
        die("the relay is gone");
    if (n < 0)
        return;
    p->receipt_bytes += (size_t)n;
    size_t whole = p->receipt_bytes / RECEIPT_BYTES;
    for (size_t i = 0; i < whole; i++) {
        uint64_t id, due;
        memcpy(&id, p->receipts + i * RECEIPT_BYTES, sizeof id);
        due = p->due_ns[id % IN_FLIGHT];
        if (p->is_warm)
            percentiles_note(&p->times, now > due ? (now - due) / 1000 : 0);
        p->confirmed = id + 1;
    }
    p->receipt_bytes -= whole * RECEIPT_BYTES;
    memmove(p->receipts, p->receipts + whole * RECEIPT_BYTES, p->receipt_bytes);
}

static void look_at_clock(struct producer *p)
{
    uint64_t now = now_ns();
    if (!p->is_warm && now >= p->warm_ns) {
        p->is_warm = true;
        p->warm_since_ns = now;
        p->confirmed_before = p->confirmed;
        p->account->shared->warm = true;
    }
    if (!p->is_over && now >= p->end_ns) {
        p->is_over = true;
        p->account->result->seconds = (double)(now - p->warm_since_ns) / SECOND_NS;
        p->account->result->confirmed = p->confirmed - p->confirmed_before;
    }
}

static void round_of(struct producer *p)
{
    look_at_clock(p);
    uint64_t wait_ns = make_some(p);
    bool unwritten = p->written < p->ring.received;
    if (write_some(p) && may_make(p) && p->o->rate <= 0)
        wait_ns = 0;
    unwritten = unwritten && p->written < p->ring.received;
    wait_ns = unwritten ? IDLE_NS : wait_ns < IDLE_NS ? wait_ns : IDLE_NS;
    struct timespec wait = {.tv_nsec = (long)(wait_ns < IDLE_NS ? wait_ns : IDLE_NS - 1)};
    struct pollfd f = {.fd = p->relay, .events = (short)(POLLIN | (unwritten ? POLLOUT : 0))};
    (void)ppoll(&f, 1, &wait, NULL);
    if (f.revents & (POLLIN | POLLHUP))
        read_receipts(p);
}

void producer_run(const struct options *o, struct account *a, uint16_t relay_port)
{
    struct producer *p = mem_new(struct producer);
    uint64_t seed = 1;
    p->o = o;
    p->account = a;
    p->relay = wire_connect(relay_port);
    wire_tune(p->relay, false);
    ring_open(&p->ring);
    percentiles_init(&p->times);
    p->message = mem_alloc(o->size);
    for (uint64_t i = 0; i < o->size; i++)
        p->message[i] = (uint8_t)rng_next(&seed);
    account_ready(a);
    while (a->shared->ready < process_count(o))
        wire_wait(-1, 0);
    p->began_ns = now_ns();
    p->warm_ns = p->began_ns + (uint64_t)(o->warmup_s * SECOND_NS);
    p->end_ns = p->warm_ns + (uint64_t)(o->seconds * SECOND_NS);
    while (!p->is_over || p->confirmed < p->made)
        round_of(p);
    account_times(a, &p->times);
    shutdown(p->relay, SHUT_WR);
    account_close(a);
}
