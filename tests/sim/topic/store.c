/* A metadata store that is slow, away, or does not know what it did. */
#include <assert.h>
#include <string.h>

#include "common/mem.h"
#include "tests/sim/topic/topic.h"

struct key {
    char *name;
    bool here;
    int64_t version;
    struct slice value;
};

static struct key keys[KEYS];

enum what { GET, PUT, REMOVE, RANGE };

struct request {
    enum what what;
    char *key, *after;
    struct slice value;
    int64_t expected;
    char *checked; /* another key, which must be at this version too; NULL: none */
    int64_t checked_version;
    size_t limit;
    struct meta_call *call;
    enum err instead; /* of the answer: it may have happened */
    bool late;        /* it happens after the answer */
    struct meta_reply reply;
};

static struct key *find(const char *name)
{
    for (unsigned i = 0; i < KEYS; i++)
        if (keys[i].name && strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

static struct key *find_or_make(const char *name)
{
    struct key *k = find(name);

    for (unsigned i = 0; !k && i < KEYS; i++)
        if (!keys[i].name) {
            k = &keys[i];
            k->name = mem_string(name);
        }
    return k;
}

static enum err write_key(struct request *q)
{
    struct key *k = find_or_make(q->key);
    int64_t version = k->here ? k->version : META_ABSENT;

    if (q->checked) {
        const struct key *other = find(q->checked);
        if ((other && other->here ? other->version : META_ABSENT) != q->checked_version)
            return ERR_BAD_VERSION;
    }
    if (q->expected != META_ANY && q->expected != version)
        return q->what == REMOVE && version == META_ABSENT ? ERR_NOT_FOUND : ERR_BAD_VERSION;
    if (q->what == REMOVE) {
        k->here = false;
        return ERR_OK;
    }
    k->value = slice_copy(q->value.base, q->value.len);
    k->version = k->here ? k->version + 1 : 0;
    k->here = true;
    q->reply.version = k->version;
    topic_say("store: %s is at version %d", q->key, (int)k->version);
    return ERR_OK;
}

static void read_range(struct request *q)
{
    struct meta_item *items = mem_alloc(KEYS * sizeof *items);
    size_t n = 0;

    for (unsigned i = 0; i < KEYS; i++) {
        const struct key *k = &keys[i];
        if (!k->here || strncmp(k->name, q->key, strlen(q->key)) != 0)
            continue;
        if (q->after && strcmp(k->name, q->after) <= 0)
            continue;
        size_t at = n++;
        for (; at > 0 && strcmp(items[at - 1].key, k->name) > 0; at--)
            items[at] = items[at - 1];
        items[at] = (struct meta_item){.key = k->name, .version = k->version};
    }
    q->reply.more = n > q->limit;
    q->reply.count = n < q->limit ? n : q->limit;
    q->reply.items = items;
}

static enum err do_it(struct request *q)
{
    const struct key *k;

    if (q->what == PUT || q->what == REMOVE)
        return write_key(q);
    if (q->what == RANGE) {
        read_range(q);
        return ERR_OK;
    }
    k = find(q->key);
    if (!k || !k->here)
        return ERR_NOT_FOUND;
    q->reply.value = k->value;
    q->reply.version = k->version;
    return ERR_OK;
}

static void answer(void *arg)
{
    struct request *q = arg;

    q->call->done(q->call, &q->reply);
}

static void linger(void *arg)
{
    struct request *q = arg;

    if (do_it(q) == ERR_OK)
        topic.tally->lingered++;
}

static void arrive(void *arg)
{
    struct request *q = arg;

    if (q->instead == ERR_UNKNOWN_STATE && q->late) {
        struct request *copy = mem_new(struct request);
        *copy = *q;
        topic_later(NULL, topic_delay() * 5, linger, copy);
    } else if (q->instead != ERR_NOT_READY) {
        q->reply.err = do_it(q);
    }
    if (q->instead)
        q->reply = (struct meta_reply){.err = q->instead};
    topic_later(q->call->home, topic_delay(), answer, q);
}

static void ask(struct request one)
{
    struct request *q = mem_new(struct request);

    *q = one;
    if (topic_chance(topic.knobs.away)) {
        q->instead = ERR_NOT_READY;
    } else if (topic_chance(topic.knobs.unsure)) {
        q->instead = one.what == GET || one.what == RANGE ? ERR_TIMEOUT : ERR_UNKNOWN_STATE;
        q->late = topic_chance(400);
        topic.tally->unsure++;
    }
    topic_later(NULL, topic_delay(), arrive, q);
}

static void get(struct metadata *m, const char *key, struct meta_call *c)
{
    (void)m;
    ask((struct request){.what = GET, .key = mem_string(key), .call = c});
}

static void put(struct metadata *m, const char *key, struct slice value, int64_t expected,
                struct meta_call *c)
{
    (void)m;
    ask((struct request){
        .what = PUT, .key = mem_string(key), .value = value, .expected = expected, .call = c});
}

static void take_out(struct metadata *m, const char *key, int64_t expected, struct meta_call *c)
{
    (void)m;
    ask((struct request){.what = REMOVE, .key = mem_string(key), .expected = expected, .call = c});
}

/* The one that a cursor is made with. */
static void txn(struct metadata *m, const struct meta_op *ops, size_t n, struct meta_call *c)
{
    (void)m;
    assert(n == 2 && ops[0].kind == META_PUT && ops[1].kind == META_CHECK);
    ask((struct request){.what = PUT,
                         .key = mem_string(ops[0].key),
                         .value = ops[0].value,
                         .expected = ops[0].expected,
                         .checked = mem_string(ops[1].key),
                         .checked_version = ops[1].expected,
                         .call = c});
}

static void range(struct metadata *m, const char *prefix, const char *after, size_t limit,
                  bool keys_only, struct meta_call *c)
{
    (void)m;
    (void)keys_only;
    ask((struct request){.what = RANGE,
                         .key = mem_string(prefix),
                         .after = after ? mem_string(after) : NULL,
                         .limit = limit,
                         .call = c});
}

/* This store never goes back: there is nothing to tell. */
static void watch(struct metadata *m, const char *prefix, struct meta_watch *w)
{
    (void)m;
    (void)prefix;
    (void)w;
}

static void unwatch(struct metadata *m, struct meta_watch *w)
{
    (void)m;
    (void)w;
}

void store_begin(void)
{
    static const struct meta_ops ops = {.get = get,
                                        .put = put,
                                        .remove = take_out,
                                        .range = range,
                                        .txn = txn,
                                        .watch = watch,
                                        .unwatch = unwatch};

    memset(keys, 0, sizeof keys);
    topic.store.ops = &ops;
}
