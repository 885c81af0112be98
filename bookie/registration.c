#include "bookie/registration.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "metadata/paths.h"

enum { RETRY_US = 200000, TRIES = 200 /* longer than any session lives */ };

enum state { OUT, HOLDING, LOOKING, EVICTING, RELEASING, IN };

struct registration {
    struct metadata *meta;
    struct loop *loop;
    const char *bookie_id;
    struct bookie_record record;
    enum state state;
    bool holds[2];   /* the writable key, the read-only one */
    unsigned moving; /* the one that the call is about */
    char key[META_KEY_MAX];
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
    const enum err err = path_bookie(r->bookie_id, which == 1, r->key);
    if (err) {
        settle(r, err);
        return;
    }
    r->state = state;
    r->moving = which;
    if (state == HOLDING)
        meta_hold(r->meta, r->key, bookie_record_write(r->bookie_id, &r->record), &r->call);
    else
        meta_release(r->meta, r->key, &r->call);
}

/* What is missing between what is held and what is wanted? */
static void step(struct registration *r)
{
    const unsigned want = atomic_load(&r->wanted_read_only);
    if ((r->state != OUT && r->state != IN) || timer_armed(&r->timer))
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

static void rest(struct registration *r)
{
    r->state = r->holds[0] || r->holds[1] ? IN : OUT;
}

static void failed(struct registration *r, enum err err)
{
    rest(r);
    if (r->failures++ == 0)
        log_event(LOG_WARN, "bookie.registration_failed", F_STR("bookie", r->bookie_id),
                  F_ERR(err));
    if (r->failures > TRIES || r->closing)
        settle(r, err);
    if (!r->closing)
        loop_after(r->loop, &r->timer, RETRY_US);
}

static void done(struct registration *r, bool held)
{
    rest(r);
    r->failures = 0;
    r->holds[r->moving] = held;
    log_event(LOG_INFO, held ? "bookie.registered" : "bookie.unregistered",
              F_STR("bookie", r->bookie_id), F_STR("as", r->moving ? "readonly" : "writable"));
    step(r);
}

/* Whoever registered this address with this name is gone: we listen on it, and our directories
 * and their cookie are locked. */
static bool was_ours(const struct registration *r, const struct meta_reply *reply)
{
    struct bookie_record there = {0};
    if (reply->err || bookie_record_read(r->bookie_id, slice_view(reply->value), &there))
        return false;
    const bool same = there.port == r->record.port && strcmp(there.host, r->record.host) == 0;
    bookie_record_drop(&there);
    return same;
}

static void looked(struct registration *r, const struct meta_reply *reply)
{
    if (!was_ours(r, reply)) {
        failed(r, ERR_EXISTS);
        return;
    }
    r->state = EVICTING;
    meta_remove(r->meta, r->key, reply->version, &r->call);
}

/* Whatever became of it, the next try to hold the key tells. */
static void evicted(struct registration *r, enum err err)
{
    if (err && err != ERR_NOT_FOUND && err != ERR_BAD_VERSION) {
        failed(r, err);
        return;
    }
    log_event(LOG_INFO, "bookie.evicted_itself", F_STR("bookie", r->bookie_id));
    rest(r);
    step(r);
}

static void held(struct registration *r, enum err err)
{
    if (err == ERR_EXISTS && !r->closing) {
        r->state = LOOKING;
        meta_get(r->meta, r->key, &r->call);
    } else if (err) {
        failed(r, err);
    } else {
        done(r, true);
    }
}

static void answered(struct meta_call *call, const struct meta_reply *reply)
{
    struct registration *r = container_of(call, struct registration, call);
    if (r->state == HOLDING)
        held(r, reply->err);
    else if (r->state == LOOKING)
        looked(r, reply);
    else if (r->state == EVICTING)
        evicted(r, reply->err);
    else if (reply->err && reply->err != ERR_NOT_FOUND)
        failed(r, reply->err);
    else
        done(r, false);
}

static void try_again(struct timer *t)
{
    step(container_of(t, struct registration, timer));
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
