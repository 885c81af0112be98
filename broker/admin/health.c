#include "broker/admin/health.h"

#include <string.h>

#include "broker/broker.h"
#include "broker/cluster/ownership.h"
#include "broker/managed_ledger/managed_ledger.h"
#include "broker/topic/topics.h"
#include "common/crc32c.h"
#include "common/mem.h"
#include "proto/message.h"

struct health {
    struct admin *admin;
    struct list_node waiting;
    bool checking, closing, lost;
    struct managed_ledger *ml;
    struct ml_owner owner;
    struct ml_call call;
    struct ml_add add;
    struct ml_read read;
    struct slice said;
    uint64_t sequence;
    struct timer late;
};

struct patient {
    struct list_node node;
    struct http_request *request;
};

/* ---- answers ---- */

static void answer(struct health *h, const char *why)
{
    loop_cancel(h->admin->env.home, &h->late);
    for (struct list_node *n; (n = list_pop_front(&h->waiting));) {
        struct patient *p = list_entry(n, struct patient, node);
        if (why)
            http_reply_reason(p->request, 503, "%s", why);
        else
            http_reply_text(p->request, 200, "ok");
        mem_free(p);
    }
}

static void too_late(struct timer *t)
{
    answer(container_of(t, struct health, late), "a message was not stored in time");
}

/* ---- the end ---- */

static void gone(struct ml_call *c, enum err err, struct managed_ledger *m)
{
    struct health *h = container_of(c, struct health, call);
    struct admin *a = h->admin;

    (void)err, (void)m;
    h->lost = false;
    if (!h->closing)
        return;
    mem_free(h);
    admin_lets_go(a);
}

static void close_log(struct health *h)
{
    h->call.done = gone;
    managed_ledger_close(&h->ml, &h->call);
}

static void over(struct health *h, const char *why)
{
    h->checking = false;
    slice_drop(&h->said);
    answer(h, why);
    if (h->ml && h->lost && !h->closing)
        close_log(h);
}

/* ---- one try ---- */

static void read_back(struct ml_read *r, enum err err, struct ml_entry *entries, unsigned n,
                      struct position next)
{
    struct health *h = container_of(r, struct health, read);
    bool same = n > 0 && entries[0].payload.len >= h->said.len &&
                memcmp(entries[0].payload.base + entries[0].payload.len - h->said.len, h->said.base,
                       h->said.len) == 0;

    (void)next;
    for (unsigned i = 0; i < n; i++)
        slice_drop(&entries[i].payload);
    if (err)
        over(h, err_text(err));
    else
        over(h, same ? NULL : "what was stored was not read back");
}

static void added(struct ml_add *a, enum err err, struct position at, uint64_t index)
{
    struct health *h = container_of(a, struct health, add);

    (void)index;
    if (err || h->closing) {
        over(h, err ? err_text(err) : "the broker stops");
        return;
    }
    h->read = (struct ml_read){.from = at, .max_entries = 1, .done = read_back};
    managed_ledger_read(h->ml, &h->read);
}

static struct slice message(uint64_t sequence)
{
    Pulsar__Proto__MessageMetadata m = PULSAR__PROTO__MESSAGE_METADATA__INIT;
    char name[] = "healthcheck";

    m.producer_name = name;
    m.sequence_id = sequence;
    m.publish_time = loop_wall_ms();
    size_t size = pulsar__proto__message_metadata__get_packed_size(&m);
    size_t len = FRAME_MAGIC_SIZE + 4 + size;
    struct slab *slab = slab_new(len);
    uint8_t *at = slab_bytes(slab), *checked = at + FRAME_MAGIC_SIZE;
    for (unsigned i = 0; i < 4; i++)
        checked[i] = (uint8_t)(size >> (24 - 8 * i));
    pulsar__proto__message_metadata__pack(&m, checked + 4);
    frame_magic(at, crc32c(checked, 4 + size));
    return slice_take(&slab, len);
}

static void try(struct health *h)
{
    h->said = message(h->sequence++);
    h->add = (struct ml_add){.payload = {.n = 1, .at = {h->said}},
                             .crc = crc32c(h->said.base, h->said.len),
                             .messages = 1,
                             .done = added};
    enum err err = managed_ledger_add(h->ml, &h->add);
    if (err)
        over(h, err_text(err));
}

/* ---- its log ---- */

static void grew(struct ml_owner *o)
{
    (void)o;
}

static void lost(struct ml_owner *o, enum err err)
{
    struct health *h = container_of(o, struct health, owner);

    (void)err;
    h->lost = true;
    if (!h->checking && h->ml && !h->closing)
        close_log(h);
}

static void opened(struct ml_call *c, enum err err, struct managed_ledger *m)
{
    struct health *h = container_of(c, struct health, call);
    const struct broker_conf *conf = h->admin->env.conf;
    const struct ml_policy nothing_kept = {.quorum = {.ensemble = (unsigned)conf->ensemble,
                                                      .write = (unsigned)conf->write_quorum,
                                                      .ack = (unsigned)conf->ack_quorum}};

    if (!err) {
        h->ml = m;
        managed_ledger_configure(m, &nothing_kept);
    }
    if (h->closing) {
        over(h, "the broker stops");
        if (h->ml)
            close_log(h);
        else
            gone(c, ERR_OK, NULL);
    } else if (err) {
        over(h, err_text(err));
    } else {
        try(h);
    }
}

static void open_log(struct health *h)
{
    const struct admin_env *env = &h->admin->env;
    const char *id = *env->conf->broker_id ? env->conf->broker_id : broker_urls_host(env->self);
    char *name = mem_format("pulsar/%s/persistent/healthcheck", id);

    h->owner = (struct ml_owner){.grew = grew, .failed = lost};
    h->call.done = opened;
    managed_ledger_open(topics_env_of(env->topics->at[0])->ledgers, name, true, &h->owner,
                        &h->call);
    mem_free(name);
}

/* ---- asked ---- */

void health_ask(struct health *h, struct http_request *r)
{
    struct patient *p = mem_new(struct patient);

    p->request = r;
    list_push_back(&h->waiting, &p->node);
    if (!timer_armed(&h->late))
        loop_after(h->admin->env.home, &h->late, (uint64_t)HEALTH_S * 1000000);
    if (h->checking)
        return;
    if (h->lost) {
        answer(h, "the heartbeat log is being opened anew");
        return;
    }
    h->checking = true;
    if (h->ml)
        try(h);
    else
        open_log(h);
}

struct health *health_open(struct admin *a)
{
    struct health *h = mem_new(struct health);

    h->admin = a;
    h->late.run = too_late;
    list_init(&h->waiting);
    admin_holds(a);
    return h;
}

/* An opening goes on to its end; a message under way ends with its log. */
void health_close(struct health **hp)
{
    struct health *h = *hp;
    bool being_closed = h->lost && !h->ml && !h->checking;

    *hp = NULL;
    h->closing = true;
    answer(h, "the broker stops");
    if (h->ml)
        close_log(h);
    else if (!h->checking && !being_closed)
        gone(&h->call, ERR_OK, NULL);
}
