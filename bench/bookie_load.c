/* A load for one bookie in version 2 of its protocol, without a ledger client in between.
 *
 *   bookie-load -p PORT add   -l LEDGERS -s BYTES -w WINDOW [-r RATE] [-g]   until -t SECONDS
 *   bookie-load -p PORT read  -l LEDGERS -n ENTRIES -w WINDOW [-x]           of what add has
 * written bookie-load -p PORT tail  ...                                            adds, and reads
 * each
 *
 *   -g  striping gaps: of E=3 Qw=2 this bookie has two entries of three
 *   -x  reads in any order; else each ledger from its first entry on
 *   -n  entries of each ledger: as many as are written, then it ends; or as many as there are to
 * read -f  first ledger      -c connections      -W warm-up, in seconds
 *
 * One thread.  Payloads are zeros that were never computed, and entries have no digest: the bookie
 * looks at neither.  At a rate a time counts from when the request was due.  The last line is JSON.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/loop.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/percentiles.h"
#include "common/rng.h"
#include "proto/bookie_frame.h"

enum { HEAD = BOOKIE_ADD_FRONT + ENTRY_PREFIX, IOVS = 256, IN = 1 << 20, CONNECTIONS = 64 };
enum { FRAME_HEAD = 28, STATUSES = 128 };

struct options {
    uint64_t port, ledgers, size, window, rate, entries, first, connections, seconds, warmup;
    bool gaps, random, adds, reads;
};

/* A request that is not wholly sent yet. */
struct pending {
    uint8_t head[HEAD];
    uint32_t head_len, body_len;
};

struct connection {
    int fd;
    uint64_t put, sent; /* of `queue`, a ring of o.window */
    size_t offset;      /* bytes of the one at `sent` that are away */
    struct pending *queue;
    uint8_t *in;
    size_t in_len, skip; /* bytes in `in`; bytes of a body that are still to come */
};

struct ledger {
    uint64_t next;   /* how many were asked */
    uint64_t *since; /* of those under way, a ring; 0: none */
};

struct load {
    struct options o;
    struct connection at[CONNECTIONS];
    struct ledger *ledgers;
    uint64_t ring;       /* of each ledger */
    uint64_t turn, left; /* whose it is; requests left to ask, all ledgers */
    uint64_t under_way, began, ends, measured_from, next_due;
    uint64_t seed, done, bytes, ever, outcomes[STATUSES];
    uint8_t key[MASTER_KEY_SIZE];
    uint8_t *payload;
    struct percentiles times, tail_times;
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bookie-load: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- options -------------------------------------------------------------------------------- */

static uint64_t number(const char *text)
{
    uint64_t n;
    if (parse_u64(text, &n)) {
        errno = EINVAL;
        die(text);
    }
    return n;
}

static uint64_t *place_of(struct options *o, int c)
{
    switch (c) {
    case 'p':
        return &o->port;
    case 'l':
        return &o->ledgers;
    case 's':
        return &o->size;
    case 'w':
        return &o->window;
    case 'r':
        return &o->rate;
    case 'n':
        return &o->entries;
    case 'f':
        return &o->first;
    case 'c':
        return &o->connections;
    case 't':
        return &o->seconds;
    case 'W':
        return &o->warmup;
    default:
        return NULL;
    }
}

static struct options read_options(int argc, char **argv)
{
    struct options o = {.port = 3181,
                        .ledgers = 1,
                        .size = 1024,
                        .window = 1000,
                        .first = 1,
                        .connections = 4,
                        .seconds = 10};
    for (int c; (c = getopt(argc, argv, "p:l:s:w:r:n:f:c:t:W:gx")) != -1;) {
        uint64_t *into = place_of(&o, c);
        if (into)
            *into = number(optarg);
        o.gaps |= c == 'g';
        o.random |= c == 'x';
        if (c == '?')
            exit(2);
    }
    const char *what = optind < argc ? argv[optind] : "";
    o.adds = strcmp(what, "add") == 0 || strcmp(what, "tail") == 0;
    o.reads = strcmp(what, "read") == 0 || strcmp(what, "tail") == 0;
    if ((!o.adds && !o.reads) || o.connections == 0 || o.connections > CONNECTIONS ||
        o.ledgers == 0 || o.window == 0 || o.size > 4 << 20 || (!o.adds && o.entries == 0)) {
        fprintf(stderr, "usage: bookie-load -p PORT add|read|tail, see bench/bookie_load.c\n");
        exit(2);
    }
    return o;
}

/* ---- asking --------------------------------------------------------------------------------- */

static void connect_one(struct load *l, struct connection *c)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)l->o.port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int on = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (const struct sockaddr *)&to, sizeof to) != 0)
        die("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    c->queue = mem_alloc(l->o.window * sizeof c->queue[0]);
    c->in = mem_alloc(IN);
}

static uint64_t id_of(const struct load *l, uint64_t n)
{
    return l->o.gaps ? n / 2 * 3 + n % 2 : n;
}

static uint64_t number_of(const struct load *l, uint64_t id)
{
    return l->o.gaps ? id / 3 * 2 + id % 3 : id;
}

static void put_u64(uint8_t *at, uint64_t v)
{
    for (unsigned i = 0; i < 8; i++)
        at[i] = (uint8_t)(v >> (56 - 8 * i));
}

static struct pending *room_on(struct load *l, uint64_t ledger)
{
    struct connection *c = &l->at[ledger % l->o.connections];
    return &c->queue[c->put++ % l->o.window];
}

static void ask_add(struct load *l, uint64_t ledger, uint64_t entry)
{
    struct pending *p = room_on(l, ledger);
    uint8_t *at = p->head + BOOKIE_ADD_FRONT;
    bookie_write_add(p->head, 0, l->key, ENTRY_PREFIX + l->o.size);
    memset(at, 0, ENTRY_PREFIX);
    put_u64(at, ledger);
    put_u64(at + 8, entry);
    put_u64(at + 16, entry - 1);
    p->head_len = HEAD;
    p->body_len = (uint32_t)l->o.size;
}

static void ask_read(struct load *l, uint64_t ledger, uint64_t entry)
{
    struct pending *p = room_on(l, ledger);
    p->head_len = (uint32_t)bookie_write_read(p->head, 0, (int64_t)ledger, (int64_t)entry, l->key);
    p->body_len = 0;
}

/* Its next, unless that would overtake one that is a whole ring behind. */
static bool ask_of(struct load *l, uint64_t n, uint64_t due)
{
    struct ledger *g = &l->ledgers[n];
    uint64_t i = g->next;
    if (l->o.entries && g->next >= l->o.entries && !(l->o.random && !l->o.adds))
        return false;
    if (l->o.random && !l->o.adds)
        i = rng_below(&l->seed, l->o.entries);
    uint64_t *since = &g->since[i % l->ring];
    if (*since)
        return false;
    *since = due;
    g->next++;
    if (l->o.adds)
        ask_add(l, l->o.first + n, id_of(l, i));
    else
        ask_read(l, l->o.first + n, id_of(l, i));
    l->under_way++;
    return true;
}

static bool ask_next(struct load *l, uint64_t due)
{
    for (uint64_t tries = 0; tries < l->o.ledgers; tries++) {
        const uint64_t n = l->turn++ % l->o.ledgers;
        if (ask_of(l, n, due))
            return true;
    }
    return false;
}

static void ask_all(struct load *l, uint64_t now)
{
    while (l->under_way < l->o.window && now < l->ends) {
        const uint64_t due = l->o.rate ? l->next_due / 1000 : now;
        if (due > now || !ask_next(l, due))
            return;
        if (l->o.rate)
            l->next_due += 1000000000 / l->o.rate;
    }
}

/* ---- sending -------------------------------------------------------------------------------- */

static int gather(const struct load *l, const struct connection *c, struct iovec *iov)
{
    int n = 0;
    size_t skip = c->offset;
    for (uint64_t i = c->sent; i < c->put && n + 2 <= IOVS; i++) {
        struct pending *p = &c->queue[i % l->o.window];
        const size_t head = skip < p->head_len ? skip : p->head_len, body = skip - head;
        if (head < p->head_len)
            iov[n++] = (struct iovec){p->head + head, p->head_len - head};
        if (body < p->body_len)
            iov[n++] = (struct iovec){l->payload, p->body_len - body};
        skip = 0;
    }
    return n;
}

static void forget_sent(const struct load *l, struct connection *c, size_t n)
{
    c->offset += n;
    while (c->sent < c->put) {
        const struct pending *p = &c->queue[c->sent % l->o.window];
        const size_t whole = (size_t)p->head_len + p->body_len;
        if (c->offset < whole)
            break;
        c->offset -= whole;
        c->sent++;
    }
}

static void send_some(struct load *l, struct connection *c)
{
    struct iovec iov[IOVS];
    while (c->sent < c->put) {
        struct msghdr m = {.msg_iov = iov, .msg_iovlen = (size_t)gather(l, c, iov)};
        const ssize_t n = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0)
            die("send");
        forget_sent(l, c, (size_t)n);
    }
}

/* ---- being answered ------------------------------------------------------------------------- */

static void note(struct load *l, struct percentiles *p, uint64_t since, uint64_t now, size_t bytes)
{
    l->ever++;
    if (now < l->measured_from)
        return;
    percentiles_note(p, now - since);
    l->done++;
    l->bytes += bytes;
}

static void answered(struct load *l, const uint8_t *at, size_t body, uint64_t now)
{
    struct bookie_response r;
    if (bookie_response_read(view_of(at + 4, FRAME_HEAD - 4), &r) || r.entry < 0)
        die("an answer that is none");
    const uint64_t ledger = (uint64_t)r.ledger, i = number_of(l, (uint64_t)r.entry);
    uint64_t *since = &l->ledgers[ledger - l->o.first].since[i % l->ring];
    l->outcomes[(unsigned)r.status % STATUSES]++;
    if (r.op == BOOKIE_ADD) {
        if (r.status == BOOKIE_OK)
            note(l, &l->times, *since, now, l->o.size);
        if (l->o.reads) { /* by who follows the writer */
            *since = now;
            ask_read(l, ledger, (uint64_t)r.entry);
            return;
        }
    } else if (r.status == BOOKIE_OK) {
        note(l, l->o.adds ? &l->tail_times : &l->times, *since, now, body);
    }
    *since = 0;
    l->under_way--;
}

static void take_frames(struct load *l, struct connection *c, uint64_t now)
{
    size_t at = 0;
    for (;;) {
        const size_t some = c->skip < c->in_len - at ? c->skip : c->in_len - at;
        c->skip -= some;
        at += some;
        if (c->skip > 0 || c->in_len - at < FRAME_HEAD)
            break;
        uint32_t len;
        memcpy(&len, c->in + at, sizeof len);
        const size_t body = ntohl(len) + 4u - FRAME_HEAD;
        answered(l, c->in + at, body, now);
        at += FRAME_HEAD;
        c->skip = body;
    }
    memmove(c->in, c->in + at, c->in_len - at);
    c->in_len -= at;
}

static void receive(struct load *l, struct connection *c)
{
    const ssize_t n = recv(c->fd, c->in + c->in_len, IN - c->in_len, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        die("the bookie has closed a connection");
    c->in_len += (size_t)n;
    take_frames(l, c, loop_clock());
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* Until something comes, or the next request is due. */
static void wait_for(struct load *l, struct pollfd *fds, uint64_t now)
{
    struct timespec patience = {.tv_nsec = 1000000};
    if (l->o.rate && l->under_way < l->o.window && now < l->ends) {
        const uint64_t due = l->next_due / 1000;
        patience.tv_nsec = due > now ? (long)(due - now < 1000 ? due - now : 1000) * 1000 : 0;
    }
    for (uint64_t i = 0; i < l->o.connections; i++) {
        const struct connection *c = &l->at[i];
        fds[i] = (struct pollfd){.fd = c->fd, .events = POLLIN};
        if (c->sent < c->put)
            fds[i].events |= POLLOUT;
    }
    if (ppoll(fds, l->o.connections, &patience, NULL) < 0 && errno != EINTR)
        die("poll");
}

static void run(struct load *l)
{
    struct pollfd fds[CONNECTIONS];
    uint64_t given_up = l->ends + 30000000;
    for (;;) {
        const uint64_t now = loop_clock();
        ask_all(l, now);
        if (l->under_way == 0 && (now >= l->ends || l->o.entries))
            break;
        if (now > given_up)
            die("requests without an answer");
        for (uint64_t i = 0; i < l->o.connections; i++)
            send_some(l, &l->at[i]);
        wait_for(l, fds, now);
        for (uint64_t i = 0; i < l->o.connections; i++)
            if (fds[i].revents & (POLLIN | POLLHUP | POLLERR))
                receive(l, &l->at[i]);
    }
}

static void tell_times(const char *name, const struct percentiles *p)
{
    printf(",\"%s\":{\"mean\":%.1f,\"50\":%" PRIu64 ",\"99\":%" PRIu64 ",\"99.9\":%" PRIu64
           ",\"max\":%" PRIu64 "}",
           name, percentiles_mean(p), percentiles_at(p, 0.5), percentiles_at(p, 0.99),
           percentiles_at(p, 0.999), p->largest);
}

static void tell(const struct load *l)
{
    const uint64_t now = loop_clock(), end = now < l->ends ? now : l->ends;
    const double s = end > l->measured_from ? (double)(end - l->measured_from) / 1e6 : 1e-6;
    uint64_t least = UINT64_MAX;
    for (uint64_t i = 0; i < l->o.ledgers; i++)
        if (l->ledgers[i].next < least)
            least = l->ledgers[i].next;
    printf("{\"rate\":%.1f,\"MB/s\":%.3f,\"seconds\":%.3f,\"ever\":%" PRIu64 ",\"each\":%" PRIu64
           ",\"refused\":%" PRIu64,
           (double)l->done / s, (double)l->bytes / s / 1e6, s, l->ever, least,
           l->outcomes[BOOKIE_TOO_MANY] + l->outcomes[BOOKIE_READ_ONLY]);
    tell_times("us", &l->times);
    if (l->o.adds && l->o.reads)
        tell_times("tailUs", &l->tail_times);
    printf(",\"statuses\":{");
    bool more = false;
    for (unsigned i = 0; i < STATUSES; i++)
        if (l->outcomes[i]) {
            printf("%s\"%u\":%" PRIu64, more ? "," : "", i, l->outcomes[i]);
            more = true;
        }
    printf("}}\n");
}

int main(int argc, char **argv)
{
    mem_setup();
    struct load *l = mem_new(struct load);
    l->o = read_options(argc, argv);
    l->seed = 1;
    l->payload = mem_alloc(l->o.size + 1);
    l->ledgers = mem_alloc(l->o.ledgers * sizeof l->ledgers[0]);
    l->ring = 64;
    while (l->ring < 4 * (l->o.window / l->o.ledgers + 1))
        l->ring *= 2;
    for (uint64_t i = 0; i < l->o.ledgers; i++)
        l->ledgers[i] = (struct ledger){.since = mem_alloc(l->ring * sizeof(uint64_t))};
    master_key_of(view_of("", 0), l->key);
    percentiles_init(&l->times);
    percentiles_init(&l->tail_times);
    for (uint64_t i = 0; i < l->o.connections; i++)
        connect_one(l, &l->at[i]);
    printf("ready\n");
    fflush(stdout);
    l->began = loop_clock();
    l->measured_from = l->began + l->o.warmup * 1000000;
    l->ends = l->measured_from + l->o.seconds * 1000000;
    l->next_due = l->began * 1000;
    run(l);
    tell(l);
    return 0;
}
