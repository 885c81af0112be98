#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"
#include "ledger/handle.h"
#include "ledger/id_probe.h"
#include "metadata/paths.h"

enum { TRIES_MAX = 16, ID_GAP_MAX = 1 << 30, JUMP_FIRST = 4096, JUMP_MORE = 8 };

/* An id, a value that carries a token, and a put that must not meet another's. */
struct creating {
    struct ledger_client *client;
    struct quorum quorum;
    int64_t above, id, token;
    uint32_t members[ENSEMBLE_MAX];
    struct slice value;
    unsigned tries;
    enum err err;
    struct ledger_call *call;
    struct meta_call meta;
    struct task fail;
    int64_t block, block_first; /* ids to ask for; those that are asked after */
    struct ledger_place place;
    struct ledger_tag *tags; /* while the placer is asked */
    unsigned n_tags;
    char path[META_KEY_MAX];
};

static void end(struct creating *k, enum err err, struct ledger *l)
{
    struct ledger_client *c = k->client;
    struct ledger_call *call = k->call;

    if (err)
        log_event(LOG_WARN, "ledger.create_failed", F_I64("ledger", k->id), F_ERR(err));
    slice_drop(&k->value);
    mem_free(k);
    call->done(call, err, l);
    client_release(c);
}

static void fail_now(struct task *t)
{
    struct creating *k = container_of(t, struct creating, fail);

    end(k, k->err, NULL);
}

static void created(struct creating *k, const struct meta_reply *r)
{
    struct ledger *l = handle_new(k->client, k->id);
    enum err err = layout_read(&l->layout, k->client->bookies, slice_view(k->value), r->version);

    l->ahead = r->ahead;
    if (err) {
        ledger_drop(&l);
    } else {
        l->writer = writer_new(l);
        log_event(LOG_INFO, "ledger.created", F_I64("ledger", k->id));
    }
    end(k, err, l);
}

static void take_id(struct creating *k);
static void look(struct creating *k);

static void put_done(struct meta_call *c, const struct meta_reply *r)
{
    struct creating *k = container_of(c, struct creating, meta);

    if (r->err == ERR_OK)
        created(k, r);
    else if (r->err == ERR_BAD_VERSION || r->err == ERR_EXISTS || r->err == ERR_UNKNOWN_STATE)
        look(k);
    else
        end(k, r->err, NULL);
}

static void put(struct creating *k)
{
    k->meta.done = put_done;
    meta_put(k->client->meta, k->path, slice_share(k->value), META_ABSENT, &k->meta);
}

static void try_again(struct creating *k, void (*how)(struct creating *k), enum err err)
{
    if (++k->tries == TRIES_MAX)
        end(k, err, NULL);
    else
        how(k);
}

/* Somebody's ledger has this id: ours, if the put's answer was lost on its way. */
static void looked(struct meta_call *c, const struct meta_reply *r)
{
    struct creating *k = container_of(c, struct creating, meta);
    struct layout there = {0};

    if (r->err == ERR_NOT_FOUND) {
        try_again(k, put, ERR_UNKNOWN_STATE);
        return;
    }
    if (r->err) {
        try_again(k, look, r->err);
        return;
    }
    enum err err = layout_read(&there, k->client->bookies, slice_view(r->value), r->version);
    bool ours = !err && layout_has_token(&there, k->token);
    bool is_open = ours && there.facts.state == LEDGER_OPEN;
    layout_drop(&there);
    if (is_open)
        created(k, r);
    else if (ours)
        end(k, ERR_FENCED, NULL); /* somebody has recovered it before we knew that we had it */
    else
        try_again(k, take_id, ERR_EXISTS);
}

static void look(struct creating *k)
{
    k->meta.done = looked;
    meta_get(k->client->meta, k->path, &k->meta);
}

static void use_id(struct creating *k, int64_t id)
{
    k->id = id;
    enum err err = path_ledger(id, k->path);
    if (err)
        end(k, err, NULL);
    else
        put(k);
}

static bool in_block(const struct creating *k)
{
    const struct ledger_client *c = k->client;

    return c->id_next < c->id_end && c->id_end - 1 > k->above;
}

static void take_from_block(struct creating *k)
{
    struct ledger_client *c = k->client;

    if (c->id_next <= k->above)
        c->id_next = k->above + 1;
    use_id(k, c->id_next++);
}

static void use_block(struct creating *k)
{
    k->client->id_next = k->block_first;
    k->client->id_end = k->block_first + ID_BLOCK;
    /* The counter is behind the ledger that came before: up to there it is used up. */
    if (k->above >= k->client->id_end)
        k->block = k->above - k->client->id_end + 1 + ID_BLOCK;
    if (in_block(k))
        take_from_block(k);
    else if (k->block > ID_GAP_MAX)
        end(k, ERR_NOT_ALLOWED, NULL);
    else
        try_again(k, take_id, ERR_EXISTS);
}

/* The counter has gone back with the store: on to where nobody has been. */
static void jump(struct creating *k)
{
    k->block = k->block < JUMP_FIRST ? JUMP_FIRST : k->block * JUMP_MORE;
    log_event(LOG_ERROR, "ledger.id_in_use", F_I64("first", k->block_first), F_I64("ids", ID_BLOCK),
              F_I64("skipped", k->block));
    if (k->block > ID_GAP_MAX)
        end(k, ERR_NOT_ALLOWED, NULL);
    else
        try_again(k, take_id, ERR_EXISTS);
}

static void probed(void *ctx, bool used)
{
    struct creating *k = ctx;

    if (used)
        jump(k);
    else
        use_block(k);
}

static void have_block(struct meta_call *c, const struct meta_reply *r)
{
    struct creating *k = container_of(c, struct creating, meta);

    if (r->err) {
        /* A block that may have been taken is just not used. */
        if (r->err == ERR_UNKNOWN_STATE)
            try_again(k, take_id, r->err);
        else
            end(k, r->err, NULL);
        return;
    }
    k->block_first = r->first + k->block - ID_BLOCK;
    id_probe_start(k->client, k->block_first, ID_BLOCK, k->quorum.ack, probed, k);
}

static void take_id(struct creating *k)
{
    if (in_block(k)) {
        take_from_block(k);
        return;
    }
    k->meta.done = have_block;
    meta_counter(k->client->meta, PATH_LEDGER_COUNTER, k->block, &k->meta);
}

static enum err choose(struct creating *k, const struct ledger_tag *tags, unsigned n)
{
    struct placement_record groups;
    struct bookies_wish wish = {.quorum = k->quorum};
    enum err err = ERR_NOT_FOUND;

    for (unsigned i = 0; i < n && err; i++)
        if (strcmp(tags[i].key, PLACEMENT_TAG) == 0)
            err = placement_record_read(tags[i].value, &groups);
    if (!err)
        wish.groups = &groups;
    err = bookies_choose(k->client->bookies, &wish, k->members);
    if (wish.groups)
        placement_record_drop(&groups);
    return err;
}

/* Errors come later: nobody is answered in his own stack. */
static void begin(struct creating *k, const struct ledger_tag *tags, unsigned n)
{
    struct ledger_client *c = k->client;

    k->err = quorum_valid(k->quorum) ? choose(k, tags, n) : ERR_NOT_ALLOWED;
    if (k->err) {
        loop_post(c->loop, &k->fail);
        return;
    }
    /* The token tells our put from another's, should its answer get lost. */
    k->token = (int64_t)(rng_next(&c->seed) >> 1);
    k->value = layout_first(c->bookies, k->quorum, k->members, k->token, tags, n);
    take_id(k);
}

/* ---- where it is to be ---- */

static void keep_tags(struct creating *k, const struct ledger_tag *tags, unsigned n)
{
    k->tags = mem_alloc((n + 1) * sizeof *k->tags); /* one more: the rule */
    k->n_tags = n;
    for (unsigned i = 0; i < n; i++) {
        uint8_t *value = mem_alloc(tags[i].value.len + 1);
        if (tags[i].value.len > 0)
            memcpy(value, tags[i].value.base, tags[i].value.len);
        k->tags[i].key = mem_string(tags[i].key);
        k->tags[i].value = view_of(value, tags[i].value.len);
    }
}

static void drop_tags(struct creating *k)
{
    for (unsigned i = 0; i < k->n_tags; i++) {
        mem_free((void *)(uintptr_t)k->tags[i].key);
        mem_free((void *)(uintptr_t)k->tags[i].value.base);
    }
    mem_free(k->tags);
    k->tags = NULL;
}

static void told(struct ledger_place *place, enum err err, struct view rule)
{
    struct creating *k = container_of(place, struct creating, place);

    if (err) {
        drop_tags(k);
        end(k, err, NULL);
        return;
    }
    k->tags[k->n_tags] = (struct ledger_tag){PLACEMENT_TAG, rule};
    begin(k, k->tags, k->n_tags + (rule.len > 0));
    drop_tags(k);
}

void ledger_create(struct ledger_client *c, struct quorum q, int64_t above,
                   const struct ledger_tag *tags, unsigned n, struct ledger_call *call)
{
    struct ledger_placer *placer = c->conf.placer;
    struct creating *k = mem_new(struct creating);

    client_hold(c);
    k->client = c;
    k->quorum = q;
    k->above = above;
    k->id = ENTRY_NONE;
    k->block = ID_BLOCK;
    k->call = call;
    k->fail.run = fail_now;
    k->meta.home = c->loop;
    k->place.told = told;
    if (!placer) {
        begin(k, tags, n);
        return;
    }
    keep_tags(k, tags, n);
    placer->ask(placer, k->tags, n, &k->place);
}
