#include "broker/dispatch/exclusive.h"

#include <assert.h>

enum { SCALE = 16 };

/* No client has so many; it only keeps the arithmetic from overflowing. */
#define PERMITS_MAX ((int64_t)1 << 40)

static void check(const struct exclusive *x)
{
    assert(x->out <= x->out_max);
    assert(x->per_entry >= SCALE);
}

static bool is_due(const struct exclusive *x)
{
    return x->state == EXCLUSIVE_IDLE && !x->halted && x->permits > 0 && x->out < x->out_max &&
           !x->dry && position_compare(x->next, x->end) <= 0;
}

static unsigned entries_for(const struct exclusive *x)
{
    int64_t want = (x->permits * SCALE + x->per_entry - 1) / x->per_entry;

    if (x->permits > (int64_t)x->batch_max * x->per_entry)
        return x->batch_max;
    if (want < 1)
        want = 1;
    return want < x->batch_max ? (unsigned)want : x->batch_max;
}

static void step(struct exclusive *x)
{
    check(x);
    if (!is_due(x))
        return;
    x->state = EXCLUSIVE_READING;
    x->leaving = false;
    x->fx->read(x, x->next, entries_for(x));
}

static void stop_reading(struct exclusive *x)
{
    if (x->state == EXCLUSIVE_READING) {
        x->fx->cancel_read(x);
        x->state = EXCLUSIVE_IDLE;
    }
}

void exclusive_init(struct exclusive *x, const struct exclusive_fx *fx, unsigned batch_max,
                    unsigned out_max)
{
    *x = (struct exclusive){
        .fx = fx, .batch_max = batch_max, .out_max = out_max, .per_entry = SCALE};
}

void exclusive_came(struct exclusive *x, struct position next, struct position end)
{
    assert(x->state == EXCLUSIVE_EMPTY);
    x->state = EXCLUSIVE_IDLE;
    x->out = 0;
    x->permits = 0; /* a client gives all its permits anew when it subscribes */
    x->next = next;
    x->end = end;
    x->dry = false;
    step(x);
}

void exclusive_left(struct exclusive *x)
{
    stop_reading(x);
    x->state = EXCLUSIVE_EMPTY;
    x->out = 0;
}

void exclusive_flow(struct exclusive *x, uint32_t permits)
{
    if (x->permits < PERMITS_MAX)
        x->permits += permits;
    step(x);
}

void exclusive_grew(struct exclusive *x, struct position end)
{
    x->end = end;
    x->dry = false;
    step(x);
}

void exclusive_rewind(struct exclusive *x, struct position next)
{
    stop_reading(x);
    x->next = next;
    x->dry = false;
    step(x);
}

void exclusive_retry(struct exclusive *x)
{
    if (x->state != EXCLUSIVE_BACKING_OFF)
        return;
    x->state = EXCLUSIVE_IDLE;
    step(x);
}

void exclusive_halt(struct exclusive *x, bool halted)
{
    x->halted = halted;
    if (halted)
        stop_reading(x);
    step(x);
}

/* An average that follows: an eighth of what is new. */
static void learn(struct exclusive *x, uint32_t messages)
{
    uint64_t now = (uint64_t)(messages < 65536 ? messages : 65536) * SCALE;
    x->per_entry = (unsigned)((x->per_entry * 7ull + now) / 8);
    if (x->per_entry < SCALE)
        x->per_entry = SCALE;
}

enum exclusive_verdict exclusive_entry(struct exclusive *x, struct position at, uint32_t messages,
                                       bool marker)
{
    assert(x->state == EXCLUSIVE_READING);
    if (x->leaving)
        return EXCLUSIVE_LEAVE;
    if (marker)
        return EXCLUSIVE_SKIP;
    if (x->permits <= 0) {
        x->leaving = true;
        x->next = at;
        return EXCLUSIVE_LEAVE;
    }
    x->permits -= messages;
    learn(x, messages);
    return EXCLUSIVE_SEND;
}

void exclusive_read_done(struct exclusive *x, enum err err, struct position next, bool sent)
{
    assert(x->state == EXCLUSIVE_READING);
    x->state = EXCLUSIVE_IDLE;
    if (sent)
        x->out++;
    if (!x->leaving) {
        x->dry = !err && !sent && position_compare(next, x->next) <= 0;
        x->next = next;
    }
    if (err) {
        x->state = EXCLUSIVE_BACKING_OFF;
        x->fx->retry_later(x);
    }
    step(x);
}

void exclusive_delivered(struct exclusive *x)
{
    if (x->out > 0)
        x->out--;
    step(x);
}
