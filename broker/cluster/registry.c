#include "broker/cluster/registry.h"

#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/rng.h"
#include "metadata/paths.h"

enum { AGAIN_US = 250000, JOIN_TRIES_MAX = 120 };

static void hold(struct registry *r);
static void left_if_done(struct registry *r);

const struct registered *registry_find(const struct registry *r, const char *id)
{
    struct registered *b;

    HASH_FIND_STR(r->by_id, id, b);
    return b;
}

static bool is_me(const struct registry *r, const struct registered *b)
{
    return b && strcmp(b->record.nonce, r->nonce) == 0;
}

/* ---- what the store says ---- */

static void forget(struct registry *r, struct registered *b)
{
    HASH_DEL(r->by_id, b);
    broker_record_drop(&b->record);
    mem_free(b->id);
    mem_free(b);
}

static void lost(struct registry *r)
{
    if (r->state != REGISTRY_IN && r->state != REGISTRY_JOINING)
        return;
    log_event(LOG_WARN, "registration.lost", F_STR("broker", r->id));
    hold(r);
}

static void left(struct registry *r, struct registered *b)
{
    bool me = is_me(r, b);

    log_event(LOG_INFO, "broker.left", F_STR("broker", b->id));
    forget(r, b);
    if (me)
        lost(r);
}

static void joined_if_so(struct registry *r)
{
    if (r->state != REGISTRY_JOINING || !r->listed || !is_me(r, registry_find(r, r->id)))
        return;
    r->state = REGISTRY_IN;
    r->joined(r->ctx, ERR_OK);
}

static struct registered *add(struct registry *r, const char *id)
{
    struct registered *b = mem_new(struct registered);

    b->id = mem_string(id);
    HASH_ADD_KEYPTR(hh, r->by_id, b->id, strlen(b->id), b);
    return b;
}

static void told(void *ctx, const struct mirror_fact *f)
{
    struct registry *r = ctx;
    struct broker_record record;
    struct registered *b;

    HASH_FIND_STR(r->by_id, f->key, b);
    if (f->version < 0) {
        if (b)
            left(r, b);
        return;
    }
    if (broker_record_read(f->value, &record)) {
        log_event(LOG_WARN, "registration.malformed", F_STR("broker", f->key));
        if (b)
            left(r, b);
        return;
    }
    bool was_me = is_me(r, b);
    if (!b || strcmp(b->record.nonce, record.nonce) != 0)
        log_event(LOG_INFO, "broker.joined", F_STR("broker", f->key), F_STR("nonce", record.nonce));
    if (!b)
        b = add(r, f->key);
    broker_record_drop(&b->record);
    b->record = record;
    b->version = f->version;
    if (was_me && !is_me(r, b))
        lost(r);
    joined_if_so(r);
}

/* Also after a list that was made because the session may have ended. */
static void caught_up(struct follower *f)
{
    struct registry *r = container_of(f, struct registry, follower);

    r->listed = true;
    joined_if_so(r);
}

void registry_learn(struct registry *r, const char *id, const struct slice *value, int64_t version,
                    uint64_t revision)
{
    follower_learn(&r->follower, id, value, version, revision);
}

/* ---- my own ---- */

static void again(struct timer *t)
{
    hold(container_of(t, struct registry, again));
}

static void not_held(struct registry *r, enum err err)
{
    if (r->tries++ == 0)
        log_event(LOG_WARN, "registration.refused", F_STR("broker", r->id), F_ERR(err));
    if (r->state == REGISTRY_JOINING && r->tries >= JOIN_TRIES_MAX) {
        r->state = REGISTRY_OUT;
        r->joined(r->ctx, err);
        return;
    }
    loop_after(r->home, &r->again, AGAIN_US);
}

/* ---- what an earlier process left ---- */

static void removed(struct meta_call *c, const struct meta_reply *a)
{
    struct registry *r = container_of(c, struct registry, hold);

    r->holding = false;
    if (r->state == REGISTRY_LEAVING)
        left_if_done(r);
    else if (a->err && a->err != ERR_NOT_FOUND)
        not_held(r, a->err);
    else
        hold(r);
}

/* As it was listed: not one that somebody made since. */
static void remove_earlier(struct registry *r, const struct registered *b)
{
    log_event(LOG_INFO, "registration.replaced", F_STR("broker", r->id),
              F_STR("nonce", b->record.nonce));
    r->holding = true;
    r->hold = (struct meta_call){.home = r->home, .done = removed};
    meta_remove(r->meta, r->key, b->version, &r->hold);
}

static void held(struct meta_call *c, const struct meta_reply *a)
{
    struct registry *r = container_of(c, struct registry, hold);
    const struct registered *b = registry_find(r, r->id);

    r->holding = false;
    if (r->state == REGISTRY_LEAVING) {
        left_if_done(r);
    } else if (a->err == ERR_EXISTS && r->state == REGISTRY_JOINING && b && !is_me(r, b)) {
        remove_earlier(r, b);
    } else if (a->err) {
        not_held(r, a->err);
    } else {
        r->tries = 0;
        follower_learn(&r->follower, r->id, &r->value, a->version, a->revision);
    }
}

static void hold_load(struct registry *r);

static void removed_load(struct meta_call *c, const struct meta_reply *a)
{
    (void)a;
    hold_load(container_of(c, struct registry, hold_load));
}

static void held_load(struct meta_call *c, const struct meta_reply *a)
{
    struct registry *r = container_of(c, struct registry, hold_load);

    if (a->err == ERR_EXISTS && r->state == REGISTRY_JOINING) {
        r->hold_load.done = removed_load;
        meta_remove(r->meta, r->load_key, META_ANY, &r->hold_load);
        return;
    }
    r->holding_load = false;
    if (a->err)
        log_event(LOG_INFO, "registration.not_shown", F_STR("broker", r->id), F_ERR(a->err));
    if (r->state == REGISTRY_LEAVING)
        left_if_done(r);
}

static void hold_load(struct registry *r)
{
    r->holding_load = true;
    r->hold_load = (struct meta_call){.home = r->home, .done = held_load};
    meta_hold(r->meta, r->load_key, slice_share(r->value), &r->hold_load);
}

static void hold(struct registry *r)
{
    if (r->holding)
        return;
    r->holding = true;
    r->hold = (struct meta_call){.home = r->home, .done = held};
    meta_hold(r->meta, r->key, slice_share(r->value), &r->hold);
    if (!r->holding_load)
        hold_load(r);
}

/* ---- leaving: what is under way, the two keys, the follower ---- */

static void one_released(struct registry *r)
{
    if (--r->leaving == 0)
        follower_stop(&r->follower);
}

static void released(struct meta_call *c, const struct meta_reply *a)
{
    struct registry *r = container_of(c, struct registry, hold);

    if (a->err)
        log_event(LOG_WARN, "registration.not_released", F_STR("broker", r->id), F_ERR(a->err));
    one_released(r);
}

static void released_load(struct meta_call *c, const struct meta_reply *a)
{
    (void)a;
    one_released(container_of(c, struct registry, hold_load));
}

static void left_if_done(struct registry *r)
{
    if (r->holding || r->holding_load)
        return;
    r->leaving = 2;
    r->hold = (struct meta_call){.home = r->home, .done = released};
    meta_release(r->meta, r->key, &r->hold);
    r->hold_load = (struct meta_call){.home = r->home, .done = released_load};
    meta_release(r->meta, r->load_key, &r->hold_load);
}

static void follower_stopped(struct follower *f)
{
    struct registry *r = container_of(f, struct registry, follower);
    struct registered *b, *next;

    HASH_ITER(hh, r->by_id, b, next)
    forget(r, b);
    slice_drop(&r->value);
    mem_free(r->id);
    mem_free(r->key);
    mem_free(r->load_key);
    r->state = REGISTRY_OUT;
    r->left(r->ctx);
}

void registry_leave(struct registry *r)
{
    r->state = REGISTRY_LEAVING;
    loop_cancel(r->home, &r->again);
    left_if_done(r);
}

/* ---- joining ---- */

void registry_init(struct registry *r)
{
    uint8_t b[(NONCE_TEXT - 1) / 2];

    rng_bytes(b, sizeof b);
    for (size_t i = 0; i < sizeof b; i++)
        snprintf(r->nonce + 2 * i, 3, "%02x", b[i]);
    r->again.run = again;
}

void registry_join(struct registry *r, const char *id, const struct broker_urls *urls)
{
    r->state = REGISTRY_JOINING;
    r->id = mem_string(id);
    r->key = mem_format(PATH_BROKERS "%s", id);
    r->load_key = mem_format(PATH_LOAD_BROKERS "%s", id);
    r->value = broker_record_write(urls, r->nonce, loop_wall_ms());
    r->follower = (struct follower){.home = r->home,
                                    .meta = r->meta,
                                    .prefix = PATH_BROKERS,
                                    .caught_up = caught_up,
                                    .stopped = follower_stopped};
    mirror_init(&r->follower.mirror, told, r);
    follower_start(&r->follower);
    hold(r);
}
