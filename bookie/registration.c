#include "bookie/registration.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/log.h"
#include "common/mem.h"
#include "metadata/paths.h"

enum { RETRY_US = 200000, TRIES = 200 /* longer than any session lives */ };

enum state { OUT, HOLDING, RELEASING, IN };

struct registration {
    struct metadata *meta;
    struct loop *loop;
    const char *bookie_id;
    struct bookie_record record;
    enum state state;
    bool holds[2];   /* the writable key, the read-only one */
    unsigned moving; /* the one that the call is about */
    bool closing;
    unsigned failures;
    atomic_bool wanted_read_only;
    struct meta_call call;
    struct timer timer;
    struct task task; /* wanted_read_only was changed */
    atomic_bool posted;

    pthread_mutex_t lock; /* settled, err: for those who wait */
    pthread_cond_t changed;
    bool settled;
    enum err err;
};

static void step(struct registration *r);

static void settle(struct registration *r, enum err err)
{
    pthread_mutex_lock(&r->lock);
    r->settled = true;
    r->err = err;
    pthread_mutex_unlock(&r->lock);
    pthread_cond_broadcast(&r->changed);
}

static void begin(struct registration *r, enum state state, unsigned which)
{
    char key[META_KEY_MAX];
    const enum err err = path_bookie(r->bookie_id, which == 1, key);
    if (err) {
        settle(r, err);
        return;
    }
    r->state = state;
    r->moving = which;
    if (state == HOLDING)
        meta_hold(r->meta, key, bookie_record_write(r->bookie_id, &r->record), &r->call);
    else
        meta_release(r->meta, key, &r->call);
}

/* What is missing between what is held and what is wanted? */
static void step(struct registration *r)
{
    const unsigned want = atomic_load(&r->wanted_read_only);
    if (r->state == HOLDING || r->state == RELEASING || timer_armed(&r->timer))
        return;
    if (!r->closing && !r->holds[want]) {
        begin(r, HOLDING, want);
    } else if (r->holds[!want]) {
        begin(r, RELEASING, !want);
    } else if (r->closing && r->holds[want]) {
        begin(r, RELEASING, want);
    } else {
        r->state = r->closing ? OUT : IN;
        settle(r, ERR_OK);
    }
}

static void try_again(struct timer *t)
{
    step(container_of(t, struct registration, timer));
}

static void answered(struct meta_call *call, const struct meta_reply *reply)
{
    struct registration *r = container_of(call, struct registration, call);
    const bool was_holding = r->state == HOLDING;
    enum err err = reply->err;
    r->state = r->holds[0] || r->holds[1] ? IN : OUT;
    if (!was_holding && err == ERR_NOT_FOUND)
        err = ERR_OK;
    if (!err) {
        r->failures = 0;
        r->holds[r->moving] = was_holding;
        log_event(LOG_INFO, was_holding ? "bookie.registered" : "bookie.unregistered",
                  F_STR("bookie", r->bookie_id), F_STR("as", r->moving ? "readonly" : "writable"));
        step(r);
        return;
    }
    if (r->failures++ == 0)
        log_event(LOG_WARN, "bookie.registration_failed", F_STR("bookie", r->bookie_id),
                  F_ERR(err));
    if (r->failures > TRIES || r->closing)
        settle(r, err);
    if (!r->closing)
        loop_after(r->loop, &r->timer, RETRY_US);
}

static void start(void *ctx)
{
    step(ctx);
}

static enum err wait_settled(struct registration *r)
{
    pthread_mutex_lock(&r->lock);
    while (!r->settled)
        pthread_cond_wait(&r->changed, &r->lock);
    const enum err err = r->err;
    pthread_mutex_unlock(&r->lock);
    return err;
}

static void wanted_changed(struct task *t)
{
    struct registration *r = container_of(t, struct registration, task);
    atomic_store(&r->posted, false);
    step(r);
}

enum err registration_open(struct registration **out, struct metadata *meta, struct loop *loop,
                           const char *bookie_id, const struct bookie_record *record,
                           bool read_only)
{
    struct registration *r = mem_new(struct registration);
    r->meta = meta;
    r->loop = loop;
    r->bookie_id = bookie_id;
    r->record = *record;
    atomic_init(&r->wanted_read_only, read_only);
    r->call = (struct meta_call){.home = loop, .done = answered};
    r->timer.run = try_again;
    r->task.run = wanted_changed;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    *out = r;
    loop_call(loop, start, r);
    const enum err err = wait_settled(r);
    if (err)
        registration_close(out);
    return err;
}

void registration_set(struct registration *r, bool read_only)
{
    atomic_store(&r->wanted_read_only, read_only);
    if (!atomic_exchange(&r->posted, true))
        loop_post(r->loop, &r->task);
}

bool registration_is_held(const struct registration *r)
{
    return !r->closing && (r->holds[0] || r->holds[1]);
}

static void stop(void *ctx)
{
    struct registration *r = ctx;
    loop_cancel(r->loop, &r->timer);
    r->closing = true;
    pthread_mutex_lock(&r->lock);
    r->settled = false;
    pthread_mutex_unlock(&r->lock);
    step(r);
}

static void run_nothing(void *ctx)
{
    (void)ctx;
}

void registration_close(struct registration **registration)
{
    struct registration *r = *registration;
    *registration = NULL;
    if (!r)
        return;
    loop_call(r->loop, stop, r);
    const enum err err = wait_settled(r);
    if (err)
        log_event(LOG_WARN, "bookie.left_registered", F_STR("bookie", r->bookie_id), F_ERR(err));
    loop_call(r->loop, run_nothing, NULL); /* a wanted_changed() that was posted has run */
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    mem_free(r);
}
