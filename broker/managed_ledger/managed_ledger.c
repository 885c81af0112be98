#include "broker/managed_ledger/managed_ledger.h"

#include <assert.h>
#include <string.h>

#include "broker/managed_ledger/managed_ledger_inside.h"
#include "common/crc32c.h"
#include "common/log.h"
#include "proto/message.h"

enum { PREFIX_SLAB = 4096, CLOSE_RETRY_US = 100 * 1000, CLOSE_RETRY_STEPS = 6 };
enum { ROLL_RETRY_US = 10 * 1000 * 1000, CACHE_READERS_US = 10 * 1000 * 1000 };

static struct managed_ledger *of_core(struct ml_core *c)
{
    return container_of(c, struct managed_ledger, core);
}

/* ---- answers to those who added ------------------------------------------------------------- */

static void answer(struct task *t)
{
    struct managed_ledger *m = container_of(t, struct managed_ledger, answer_task);
    struct list_node due;

    m->answering = false;
    list_init(&due);
    while (!list_empty(&m->answered))
        list_push_back(&due, list_pop_front(&m->answered));
    while (!list_empty(&due)) {
        struct ml_add *a = list_entry(list_pop_front(&due), struct ml_add, node);
        if (a->append.payload.n > a->payload.n) /* else it stands in front of the payload */
            slice_drop(&a->append.payload.at[0]);
        a->done(a, a->result, a->at, a->index);
    }
    ml_release(m);
}

static void answer_soon(struct managed_ledger *m, struct ml_add *a, enum err err,
                        struct position at)
{
    a->result = err;
    a->at = at;
    a->done_us = loop_now(m->env->home);
    if (m->waits_for != ML_WAITS)
        ml_waits_note(m);
    ml_waits_since(m, &a->waits);
    list_push_back(&m->answered, &a->node);
    if (m->answering)
        return;
    m->answering = true;
    ml_hold(m);
    loop_post(m->env->home, &m->answer_task);
}

static void grew(struct round_end *t)
{
    struct managed_ledger *m = container_of(t, struct managed_ledger, grew);

    if (m->life == ML_LIFE_SERVING)
        m->owner->grew(m->owner);
    ml_release(m);
}

static bool is_read(const struct managed_ledger *m)
{
    return m->n_cursors > 0 || loop_now(m->env->home) < m->last_read_us + CACHE_READERS_US;
}

static void do_confirm(struct ml_core *c, struct ml_add *a, struct position at)
{
    struct managed_ledger *m = of_core(c);
    struct segment *s = segments_find(&m->segments, at.ledger);

    assert(s->entries == at.entry);
    s->entries++;
    if (s->open)
        s->bytes += (int64_t)a->bytes;
    if (is_read(m))
        entry_cache_put(m->env->cache, at, &a->append.payload);
    answer_soon(m, a, ERR_OK, at);
    if (!m->grew.queued) {
        ml_hold(m);
        loop_at_round_end(m->env->home, &m->grew);
    }
}

static void do_refuse(struct ml_core *c, struct ml_add *a, enum err err)
{
    answer_soon(of_core(c), a, err, POSITION_EARLIEST);
}

static void created(struct ledger_call *call, enum err err, struct ledger *l);
static void closed(struct ledger_call *call, enum err err, struct ledger *l);
static void close_again(struct timer *t);
static void wake(struct timer *t);

static struct ml_rolling *rolling_of(struct managed_ledger *m)
{
    if (!m->rolling) {
        m->rolling = mem_new(struct ml_rolling);
        *m->rolling = (struct ml_rolling){
            .ml = m,
            .create_call.done = created,
            .close_call.done = closed,
            .close_timer.run = close_again,
            .wait_timer.run = wake,
        };
    }
    return m->rolling;
}

/* ---- ledgers -----------------------------------------------------------------------------------
 */

static void created(struct ledger_call *call, enum err err, struct ledger *l)
{
    struct managed_ledger *m = container_of(call, struct ml_rolling, create_call)->ml;

    m->created = err ? NULL : l;
    if (err)
        m->roll_after_us = loop_now(m->env->home) + ROLL_RETRY_US;
    ml_core_created(&m->core, err, err ? -1 : ledger_id(l));
    ml_waits_note(m);
    ml_release(m);
}

static void do_create(struct ml_core *c, int64_t above)
{
    struct managed_ledger *m = of_core(c);
    const struct ledger_tag tags[] = {
        {"application", view_of("pulsar", 6)},
        {"component", view_of("managed-ledger", 14)},
        {"pulsar/managed-ledger", view_of(m->name, strlen(m->name))},
    };

    ml_hold(m);
    ledger_create(m->env->ledgers, ml_conf_of(m)->quorum, above, tags, 3,
                  &rolling_of(m)->create_call);
}

static void do_discard(struct ml_core *c, int64_t ledger)
{
    struct managed_ledger *m = of_core(c);

    if (m->created)
        ledger_drop(&m->created);
    ml_env_delete_ledger(m->env, ledger);
}

static void resumed(struct managed_ledger *m)
{
    if (m->wait_told)
        log_event(LOG_INFO, "managed_ledger.resumed", F_STR("topic", m->name),
                  F_U64("bookies", ledger_client_bookies(m->env->ledgers)),
                  F_U64("pending_bytes", m->core.pending_bytes));
    m->wait_told = false;
}

static void listed(struct ml_save *save, enum err err)
{
    struct managed_ledger *m = container_of(save, struct ml_rolling, list_save)->ml;

    if (!err && m->core.state == ML_LISTING) {
        m->current = m->created;
        m->created = NULL;
        m->current_since_us = loop_now(m->env->home);
        resumed(m);
    } else {
        m->segments.n--; /* the new one */
        if (m->created)
            ledger_drop(&m->created);
    }
    ml_core_listed(&m->core, err);
    ml_waits_note(m);
    if (m->current && m->core.state == ML_OPEN)
        ml_care(m);
    ml_release(m);
}

static void do_list(struct ml_core *c, int64_t ledger)
{
    struct managed_ledger *m = of_core(c);

    ml_doom_hollow(m);
    segments_add(&m->segments, (struct segment){.ledger = ledger, .open = true});
    rolling_of(m)->list_save.done = listed;
    ml_hold(m);
    /* A node that is known to be another's has ended the core before. */
    enum err err = ml_node_save(&m->node, &m->rolling->list_save);
    assert(!err);
    (void)err;
}

static enum err do_append(struct ml_core *c, struct ml_add *a)
{
    return ledger_append(of_core(c)->current, &a->append);
}

static void appended(struct ledger_append *append, enum err err, entry_id id)
{
    struct ml_add *a = container_of(append, struct ml_add, append);
    struct managed_ledger *m = a->ml;

    if (err)
        a->lost_ms += (uint32_t)((loop_now(m->env->home) - append->sent_us) / 1000);
    ml_core_appended(&m->core, a, err, id);
    if (m->core.state != ML_OPEN)
        ml_waits_note(m);
    ml_care_full(m);
    ml_end_step(m);
}

/* ---- closing -----------------------------------------------------------------------------------
 */

static void sealed(struct managed_ledger *m, int64_t entries, int64_t bytes)
{
    struct segment *s = segments_last(&m->segments);

    s->open = false;
    s->bytes = bytes;
    s->closed_ms = (int64_t)loop_wall_ms();
    m->dirty = true;
    log_event(LOG_INFO, m->core.ending ? "managed_ledger.closed" : "managed_ledger.rolled",
              F_STR("topic", m->name), F_I64("ledger", s->ledger), F_I64("entries", entries),
              F_I64("bytes", bytes));
}

static void closed(struct ledger_call *call, enum err err, struct ledger *l)
{
    struct ml_rolling *r = container_of(call, struct ml_rolling, close_call);
    struct managed_ledger *m = r->ml;
    int64_t entries = l ? ledger_last_confirmed(l) + 1 : m->core.entries;
    int64_t bytes = l ? ledger_length(l) : m->core.bytes;

    if (!err)
        ml_mend_remember(m, l ? l : m->sealing, (int64_t)loop_wall_ms());
    if (m->sealing)
        ml_source_forget(m, m->core.ledger);
    m->sealing = NULL;
    if (l)
        ledger_drop(&l);
    if (err && err_class(err) == CLASS_RETRY && !m->core.ending) {
        unsigned steps = r->close_tries < CLOSE_RETRY_STEPS ? r->close_tries : CLOSE_RETRY_STEPS;
        r->close_tries++;
        loop_after(m->env->home, &r->close_timer, (uint64_t)CLOSE_RETRY_US << steps);
        return;
    }
    if (!err)
        sealed(m, entries, bytes);
    else if (err_class(err) != CLASS_RETRY)
        err = ERR_FENCED;
    ml_core_closed(&m->core, err, entries, bytes);
    ml_waits_note(m);
    if (!err && m->core.state == ML_NO_LEDGER)
        ml_node_quietly(m);
    ml_read_soon(m);
    ml_care(m);
    ml_release(m);
}

/* Without its handle there is only the way of a new owner: find the end, close there. */
static void close_again(struct timer *t)
{
    struct ml_rolling *r = container_of(t, struct ml_rolling, close_timer);

    ledger_open(r->ml->env->ledgers, r->ml->core.ledger, LEDGER_OPEN_RECOVER, &r->close_call);
}

void ml_close_again(struct managed_ledger *m)
{
    if (!m->rolling || !timer_armed(&m->rolling->close_timer))
        return;
    loop_cancel(m->env->home, &m->rolling->close_timer);
    close_again(&m->rolling->close_timer);
}

static void do_close(struct ml_core *c)
{
    struct managed_ledger *m = of_core(c);

    rolling_of(m)->close_tries = 0;
    m->sealing = m->current;
    ml_hold(m);
    ledger_close(&m->current, &m->rolling->close_call);
}

/* ---- waiting -----------------------------------------------------------------------------------
 */

static void wake(struct timer *t)
{
    struct managed_ledger *m = container_of(t, struct ml_rolling, wait_timer)->ml;

    ml_core_woken(&m->core);
    ml_waits_note(m);
    ml_release(m);
}

static void do_wait(struct ml_core *c, enum err why, uint64_t us)
{
    struct managed_ledger *m = of_core(c);

    if (!m->wait_told)
        log_event(LOG_WARN, "managed_ledger.waiting", F_STR("topic", m->name), F_ERR(why),
                  F_U64("bookies", ledger_client_bookies(m->env->ledgers)),
                  F_U64("needed", ml_conf_of(m)->quorum.ensemble),
                  F_U64("pending_bytes", c->pending_bytes));
    m->wait_told = true;
    m->wait_why = why;
    ml_hold(m);
    loop_after(m->env->home, &rolling_of(m)->wait_timer, us);
}

static bool waits(const struct managed_ledger *m)
{
    return m->rolling && timer_armed(&m->rolling->wait_timer);
}

void ml_wait_over(struct managed_ledger *m)
{
    if (!waits(m))
        return;
    loop_cancel(m->env->home, &m->rolling->wait_timer);
    m->holds--;
}

void ml_bookies_changed(struct managed_ledger *m)
{
    if (!waits(m) || ledger_client_bookies(m->env->ledgers) < ml_conf_of(m)->quorum.ensemble)
        return;
    loop_cancel(m->env->home, &m->rolling->wait_timer);
    wake(&m->rolling->wait_timer);
}

/* ---- another owner -----------------------------------------------------------------------------
 */

static void tell_failed(struct task *t)
{
    struct managed_ledger *m = container_of(t, struct managed_ledger, fail_task);

    if (m->life == ML_LIFE_SERVING)
        m->owner->failed(m->owner, ERR_FENCED);
    ml_release(m);
}

static void do_fenced(struct ml_core *c, enum err err)
{
    struct managed_ledger *m = of_core(c);

    m->failed = true;
    log_event(LOG_WARN, "managed_ledger.fenced", F_STR("topic", m->name),
              F_I64("ledger", c->ledger), F_ERR(err));
    ml_hold(m);
    loop_post(m->env->home, &m->fail_task);
}

void ml_fail(struct managed_ledger *m, enum err err)
{
    ml_core_fence(&m->core, err);
    m->failed = true; /* also when the core has ended by itself */
}

/* ---- adding ------------------------------------------------------------------------------------
 */

void ml_write_init(struct managed_ledger *m, int64_t last_ledger, uint64_t next_index)
{
    static const struct ml_core_ops ops = {
        .create = do_create,
        .list = do_list,
        .append = do_append,
        .close = do_close,
        .wait = do_wait,
        .discard = do_discard,
        .confirm = do_confirm,
        .refuse = do_refuse,
        .fenced = do_fenced,
    };

    ml_core_init(&m->core, &ops, m->env->conf.pending_bytes, last_ledger, next_index);
    m->waits_for = ML_WAITS;
    m->answer_task.run = answer;
    m->fail_task.run = tell_failed;
    m->grew.run = grew;
}

/* Broker entry metadata, cut from a slab that many share. */
static struct slice share_prefix(struct ml_env *e, const uint8_t *bytes, size_t len)
{
    if (e->prefixes && e->prefixes_used + BROKER_ENTRY_MAX > PREFIX_SLAB)
        slab_drop(&e->prefixes);
    if (!e->prefixes) {
        e->prefixes = slab_new(PREFIX_SLAB);
        e->prefixes_used = 0;
    }
    const size_t at = e->prefixes_used;
    memcpy(slab_bytes(e->prefixes) + at, bytes, len);
    e->prefixes_used += len;
    return slice_of(e->prefixes, at, len);
}

/* What is stored: the broker entry metadata, then the payload.  In one piece where there is room
 * for it, over the command that brought the payload: one piece is sent, kept and read for less. */
static void lay_out(struct managed_ledger *m, struct ml_add *a, const uint8_t *prefix, size_t len)
{
    struct chain *stored = &a->append.payload;

    if (a->payload.n == 1 && len <= a->front) {
        struct slice *one = &stored->at[0];
        *one = a->payload.at[0];
        one->base -= len;
        one->len += len;
        memcpy((uint8_t *)(uintptr_t)one->base, prefix, len);
        stored->n = 1;
        return;
    }
    stored->at[0] = share_prefix(m->env, prefix, len);
    for (unsigned i = 0; i < a->payload.n; i++)
        stored->at[i + 1] = a->payload.at[i];
    stored->n = a->payload.n + 1;
}

static void prepare(struct managed_ledger *m, struct ml_add *a)
{
    struct broker_entry b = {
        .present = true,
        .timestamp = loop_wall_ms(),
        .index = ml_core_index_of(&m->core, a->messages),
    };
    uint8_t prefix[BROKER_ENTRY_MAX];
    const size_t prefix_len = broker_entry_write(&b, prefix), len = chain_len(&a->payload);

    assert(a->payload.n < CHAIN_MAX);
    a->ml = m;
    a->bytes = prefix_len + len;
    a->added_us = loop_now(m->env->home);
    a->waits = m->waits;
    a->lost_ms = 0;
    a->append = (struct ledger_append){
        .done = appended,
        .crc = crc32c_combine(crc32c(prefix, prefix_len), a->crc, len),
    };
    lay_out(m, a, prefix, prefix_len);
    list_init(&a->node);
    list_init(&a->append.node);
}

enum err managed_ledger_add(struct managed_ledger *m, struct ml_add *a)
{
    assert(loop_is_mine(m->env->home));
    if (m->terminated)
        return ERR_TERMINATED;
    TRY(ml_core_admits(&m->core, chain_len(&a->payload) + BROKER_ENTRY_MAX));
    if (m->waits_for != ML_WAITS)
        ml_waits_note(m);
    prepare(m, a);
    ml_core_add(&m->core, a);
    if (m->core.state != ML_OPEN)
        ml_waits_note(m);
    ml_care_full(m);
    return ERR_OK;
}

/* ---- looking -----------------------------------------------------------------------------------
 */

struct position managed_ledger_max_readable(const struct managed_ledger *m)
{
    return segments_last_entry(&m->segments);
}

const struct segments *managed_ledger_segments(const struct managed_ledger *m)
{
    return &m->segments;
}

uint64_t managed_ledger_next_index(const struct managed_ledger *m)
{
    return m->core.next_index;
}

const char *managed_ledger_name_of(const struct managed_ledger *m)
{
    return m->name;
}

size_t managed_ledger_pending_bytes(const struct managed_ledger *m)
{
    return m->core.pending_bytes;
}
