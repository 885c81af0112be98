#include "common/flight.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "common/loop.h"
#include "common/mem.h"

#define RECORDS   4096u
#define FREE_KEPT 16u /* rings of ended threads: what they did last is worth a look, too */

/* Written by one thread, read by a dump that may come at any moment: single fields are
 * whole, a record in the making may be half old. */
struct record {
    _Atomic uint64_t at_us;
    _Atomic(const char *) event;
    _Atomic int64_t a, b;
};

struct ring {
    struct ring *next;
    atomic_bool taken; /* by a thread that lives; else the next new one takes it over */
    char thread[16];
    _Atomic uint64_t written;
    struct record at[RECORDS];
};

static _Atomic(struct ring *) rings; /* only ever grows: a signal handler may walk it */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_thread_end;
static _Thread_local struct ring *mine;

static void end_of_thread(void *arg)
{
    struct ring *r = arg;
    mine = NULL;
    atomic_store(&r->taken, false);
}

static void make_key(void)
{
    pthread_key_create(&at_thread_end, end_of_thread);
}

/* The oldest is at the end of the list, so the last free one found is taken. */
static struct ring *find_free(void)
{
    unsigned n = 0;
    struct ring *oldest = NULL;
    for (struct ring *r = atomic_load(&rings); r; r = r->next)
        if (!atomic_load(&r->taken)) {
            oldest = r;
            n++;
        }
    bool taken = false;
    if (n <= FREE_KEPT || !atomic_compare_exchange_strong(&oldest->taken, &taken, true))
        return NULL;
    return oldest;
}

static struct ring *add_ring(void)
{
    struct ring *r = mem_new(struct ring);
    atomic_init(&r->taken, true);
    r->next = atomic_load(&rings);
    while (!atomic_compare_exchange_weak(&rings, &r->next, r))
        continue;
    return r;
}

static struct ring *ring_mine(void)
{
    if (mine)
        return mine;
    pthread_once(&once, make_key);
    mine = find_free();
    if (!mine)
        mine = add_ring();
    pthread_getname_np(pthread_self(), mine->thread, sizeof mine->thread);
    pthread_setspecific(at_thread_end, mine);
    return mine;
}

void flight_note(const char *event, int64_t a, int64_t b)
{
    struct ring *r = ring_mine();
    const uint64_t n = atomic_load_explicit(&r->written, memory_order_relaxed);
    struct record *to = &r->at[n % RECORDS];
    atomic_store_explicit(&to->at_us, loop_clock(), memory_order_relaxed);
    atomic_store_explicit(&to->event, event, memory_order_relaxed);
    atomic_store_explicit(&to->a, a, memory_order_relaxed);
    atomic_store_explicit(&to->b, b, memory_order_relaxed);
    atomic_store_explicit(&r->written, n + 1, memory_order_release);
}

/* ---- a dump: nothing here but arithmetic and write() -------------------------------------- */

struct out {
    int fd;
    size_t len;
    char text[4096];
};

static void flush(struct out *o)
{
    const ssize_t n = write(o->fd, o->text, o->len);
    (void)n; /* nobody is left to be told */
    o->len = 0;
}

static void add(struct out *o, const char *s)
{
    for (; *s; s++) {
        if (o->len == sizeof o->text)
            flush(o);
        o->text[o->len++] = *s;
    }
}

static void add_u64(struct out *o, uint64_t v)
{
    char digits[24];
    size_t at = sizeof digits;
    digits[--at] = '\0';
    do
        digits[--at] = (char)('0' + v % 10);
    while (v /= 10);
    add(o, digits + at);
}

static void add_i64(struct out *o, int64_t v)
{
    if (v < 0)
        add(o, "-");
    add_u64(o, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

static void add_record(struct out *o, struct record *r)
{
    const char *event = atomic_load_explicit(&r->event, memory_order_relaxed);
    if (!event)
        return;
    add_u64(o, atomic_load_explicit(&r->at_us, memory_order_relaxed));
    add(o, " ");
    add(o, event);
    add(o, " ");
    add_i64(o, atomic_load_explicit(&r->a, memory_order_relaxed));
    add(o, " ");
    add_i64(o, atomic_load_explicit(&r->b, memory_order_relaxed));
    add(o, "\n");
}

void flight_dump(int fd)
{
    struct out o = {.fd = fd};
    for (struct ring *r = atomic_load(&rings); r; r = r->next) {
        const uint64_t end = atomic_load_explicit(&r->written, memory_order_acquire);
        add(&o, "flight.dumped thread=");
        add(&o, r->thread);
        add(&o, " records=");
        add_u64(&o, end);
        add(&o, "\n");
        for (uint64_t i = end > RECORDS ? end - RECORDS : 0; i < end; i++)
            add_record(&o, &r->at[i % RECORDS]);
    }
    flush(&o);
}

/* The default action is back in place (SA_RESETHAND): returning, or raising again, ends us. */
static void on_crash(int number)
{
    flight_dump(STDERR_FILENO);
    raise(number);
}

static void on_request(int number)
{
    (void)number;
    flight_dump(STDERR_FILENO);
}

void flight_install(void)
{
    static const int crashes[] = {SIGSEGV, SIGABRT, SIGBUS};
    struct sigaction crash = {.sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND};
    struct sigaction request = {.sa_handler = on_request, .sa_flags = SA_RESTART};
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        sigaction(crashes[i], &crash, NULL);
    sigaction(SIGUSR2, &request, NULL);
}
