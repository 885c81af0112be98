#include "ledger/bookies.h"

#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/rng.h"
#include "ledger/bookie_racks.h"
#include "ledger/bookie_space.h"
#include "ledger/placement.h"
#include "metadata/metadata.h"
#include "metadata/paths.h"
#include "metadata/records.h"

enum {
    LIST_PAGE = 500,
    RETRY_FIRST_US = 50 * 1000,
    RETRY_MAX_US = 2 * 1000 * 1000,
    SUSPECT_FIRST_US = 30 * 1000 * 1000, /* and twice as long each time */
    RECENT_US = 5 * 1000 * 1000,         /* for so long it takes no failed one's place */
    SAME_FAILURE_US = 1000 * 1000,       /* what comes so close together is one failure */
    FORGIVEN_US = 300 * 1000 * 1000, /* half of the failures, after each such time without one */
    STRIKES_MAX = 20
};
#define SUSPECT_MAX_US (1800ull * 1000 * 1000)

struct bookie {
    char *id, *rack, *group; /* the latter as /bookies says; NULL: it does not */
    bool writable;
    unsigned seen_writable;               /* the listing that it was last in */
    uint32_t host_no, rack_no, region_no; /* equal numbers: the same one */
    unsigned strikes;
    bool fresh; /* the last strike, since it was registered */
    uint64_t struck_at, suspect_until;
    uint32_t uses;
    uint64_t free; /* bytes; 0: not known */
    struct bookie_link *link[LINK_KINDS];
};

struct bookies {
    struct loop *loop;
    struct metadata *meta;
    struct link_conf conf;
    struct placement_conf place;
    char *groups, *second_groups;
    uint64_t seed;
    uint32_t n, room;
    struct bookie **at;
    unsigned writable;
    bool listed, placed; /* once */
    enum { LIST_RESTING, LIST_RUNNING, LIST_STALE /* running, and must run again */ } listing;
    bool gone; /* dropped while listing */
    unsigned round;
    uint64_t retry_us;
    struct meta_call call;
    struct meta_watch watch;
    struct timer retry;
    struct bookie_racks *racks;
    struct bookie_space *space; /* NULL: it does not matter */
    struct list_node watchers;
};

/* ---- the table ---- */

static struct bookie *bookie_of(const struct bookies *b, uint32_t number)
{
    return b->at[number];
}

static void set_address(struct bookie *k, const char *host, uint16_t port)
{
    for (unsigned i = 0; i < LINK_KINDS; i++)
        link_set_address(k->link[i], host, port);
}

static void address_by_id(struct bookie *k)
{
    char *host;
    uint16_t port;

    if (parse_host_port(k->id, &host, &port))
        return;
    set_address(k, host, port);
    mem_free(host);
}

static struct bookie *bookie_new(struct bookies *b, const char *id)
{
    struct bookie *k = mem_new(struct bookie);

    k->id = mem_string(id);
    for (unsigned i = 0; i < LINK_KINDS; i++)
        k->link[i] = link_new(b->loop, id, &b->conf);
    address_by_id(k);
    return k;
}

static void tell(struct bookies *b);

/* ---- where they stand ---- */

/* What is before the port. */
static bool same_host(const struct bookie *a, const struct bookie *k)
{
    const char *a_end = strrchr(a->id, ':'), *k_end = strrchr(k->id, ':');
    size_t a_len = a_end ? (size_t)(a_end - a->id) : strlen(a->id);
    size_t k_len = k_end ? (size_t)(k_end - k->id) : strlen(k->id);

    return a_len == k_len && memcmp(a->id, k->id, a_len) == 0;
}

/* Those that nothing is said of are all in one rack. */
static bool same_rack(const struct bookie *a, const struct bookie *k)
{
    return strcmp(a->rack ? a->rack : "", k->rack ? k->rack : "") == 0;
}

/* The first part of /region/rack; without one, the region of all such. */
static size_t region_len(const struct bookie *k)
{
    const char *slash = k->rack && k->rack[0] == '/' ? strchr(k->rack + 1, '/') : NULL;

    return slash ? (size_t)(slash - k->rack) : 0;
}

static bool same_region(const struct bookie *a, const struct bookie *k)
{
    size_t len = region_len(a);

    return len == region_len(k) && (len == 0 || memcmp(a->rack, k->rack, len) == 0);
}

static uint32_t first_like(const struct bookies *b, uint32_t i,
                           bool (*same)(const struct bookie *a, const struct bookie *k))
{
    uint32_t first = 0;

    while (!same(b->at[first], b->at[i]))
        first++;
    return first;
}

static void number_places(struct bookies *b, uint32_t i)
{
    struct bookie *k = b->at[i];

    k->host_no = first_like(b, i, same_host);
    k->rack_no = first_like(b, i, same_rack);
    k->region_no = first_like(b, i, same_region);
}

void bookies_place(struct bookies *b, const char *id, const char *group, const char *rack)
{
    struct bookie *k = bookie_of(b, bookies_number(b, id));

    mem_free(k->group);
    mem_free(k->rack);
    k->group = mem_string(group);
    k->rack = mem_string(rack);
}

void bookies_unplace(struct bookies *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        mem_free(b->at[i]->group);
        mem_free(b->at[i]->rack);
        b->at[i]->group = b->at[i]->rack = NULL;
    }
}

void bookies_placed(struct bookies *b)
{
    for (uint32_t i = 0; i < b->n; i++)
        number_places(b, i);
    b->placed = true;
    tell(b);
}

/* ---- the table, again ---- */

uint32_t bookies_number(struct bookies *b, const char *id)
{
    for (uint32_t i = 0; i < b->n; i++)
        if (strcmp(b->at[i]->id, id) == 0)
            return i;
    if (b->n == b->room) {
        b->room = b->room ? 2 * b->room : 8;
        b->at = mem_resize(b->at, b->room * sizeof *b->at);
    }
    b->at[b->n++] = bookie_new(b, id);
    number_places(b, b->n - 1);
    return b->n - 1;
}

const char *bookies_id(const struct bookies *b, uint32_t number)
{
    return bookie_of(b, number)->id;
}

struct bookie_link *bookies_link(struct bookies *b, uint32_t number, enum link_kind kind)
{
    return bookie_of(b, number)->link[kind];
}

static void set_writable(struct bookies *b, struct bookie *k, bool writable)
{
    if (k->writable == writable)
        return;
    k->writable = writable;
    b->writable += writable ? 1u : -1u;
    log_event(writable ? LOG_INFO : LOG_WARN, writable ? "bookie.found" : "bookie.lost",
              F_STR("bookie", k->id), F_U64("writable", b->writable));
}

static void tell(struct bookies *b)
{
    list_each(&b->watchers, node)
    {
        struct bookies_watch *w = list_entry(node, struct bookies_watch, node);
        w->changed(w);
    }
}

/* ---- what the metadata says ---- */

/* The bookie id of a key, NULL for another kind of key. */
static const char *id_of(const char *key, bool *read_only)
{
    size_t all = strlen(PATH_BOOKIES), ro = strlen(PATH_BOOKIES_READONLY);

    *read_only = strncmp(key, PATH_BOOKIES_READONLY, ro) == 0;
    const char *id = key + (*read_only ? ro : all);
    if (strncmp(key, PATH_BOOKIES, all) != 0 || *id == '\0' || strchr(id, '/'))
        return NULL;
    return !*read_only && strcmp(id, "readonly") == 0 ? NULL : id;
}

static struct bookie *learn(struct bookies *b, const char *id, struct view value)
{
    struct bookie *k = bookie_of(b, bookies_number(b, id));
    struct bookie_record r;
    enum err err = bookie_record_read(id, value, &r);

    if (err) {
        log_event(LOG_WARN, "bookie.record_unreadable", F_STR("bookie", id), F_ERR(err));
        return k;
    }
    set_address(k, r.host, r.port);
    bookie_record_drop(&r);
    return k;
}

static void list(struct bookies *b);

static void retry_now(struct timer *t)
{
    list(container_of(t, struct bookies, retry));
}

static void take_item(struct bookies *b, const struct meta_item *item)
{
    bool read_only;
    const char *id = id_of(item->key, &read_only);

    if (!id)
        return;
    struct bookie *k = learn(b, id, slice_view(item->value));
    if (!read_only)
        k->seen_writable = b->round;
}

static void listed_all(struct bookies *b)
{
    for (uint32_t i = 0; i < b->n; i++)
        set_writable(b, b->at[i], b->at[i]->seen_writable == b->round);
    b->listed = true;
    b->retry_us = 0;
    bool again = b->listing == LIST_STALE;
    b->listing = LIST_RESTING;
    if (again)
        list(b);
    tell(b);
}

static void end(struct bookies *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        for (unsigned k = 0; k < LINK_KINDS; k++)
            link_drop(&b->at[i]->link[k]);
        mem_free(b->at[i]->id);
        mem_free(b->at[i]->rack);
        mem_free(b->at[i]->group);
        mem_free(b->at[i]);
    }
    mem_free(b->groups);
    mem_free(b->second_groups);
    mem_free(b->at);
    mem_free(b);
}

static void listed(struct meta_call *c, const struct meta_reply *r)
{
    struct bookies *b = container_of(c, struct bookies, call);

    if (b->gone) {
        end(b);
        return;
    }
    if (r->err) {
        b->listing = LIST_RESTING;
        b->retry_us = b->retry_us ? 2 * b->retry_us : RETRY_FIRST_US;
        if (b->retry_us > RETRY_MAX_US)
            b->retry_us = RETRY_MAX_US;
        loop_after(b->loop, &b->retry, b->retry_us);
        return;
    }
    for (size_t i = 0; i < r->count; i++)
        take_item(b, &r->items[i]);
    if (r->more && r->count > 0)
        meta_range(b->meta, PATH_BOOKIES, r->items[r->count - 1].key, LIST_PAGE, false, &b->call);
    else
        listed_all(b);
}

static void list(struct bookies *b)
{
    if (b->listing != LIST_RESTING) {
        b->listing = LIST_STALE;
        return;
    }
    loop_cancel(b->loop, &b->retry);
    b->listing = LIST_RUNNING;
    b->round++;
    b->call = (struct meta_call){.home = b->loop, .done = listed};
    meta_range(b->meta, PATH_BOOKIES, NULL, LIST_PAGE, false, &b->call);
}

/* A change while a listing runs may be older or newer than what it shows: list again. */
static void changed(struct meta_watch *w, const struct meta_change *c)
{
    struct bookies *b = container_of(w, struct bookies, watch);
    bool read_only;
    const char *id = c->kind == META_CHANGED_UNSURE ? NULL : id_of(c->key, &read_only);

    if (c->kind == META_CHANGED_UNSURE || b->listing != LIST_RESTING || !b->listed) {
        list(b);
        return;
    }
    if (!id)
        return;
    struct bookie *k = bookie_of(b, bookies_number(b, id));
    if (c->kind == META_CHANGED_PUT) {
        k = learn(b, id, slice_view(c->value));
        k->fresh = false;
    }
    if (!read_only)
        set_writable(b, k, c->kind == META_CHANGED_PUT);
    tell(b);
}

/* ---- choosing ---- */

/* A comma-separated list has it. */
static bool lists(const char *list, const char *word)
{
    size_t len = strlen(word);

    while (*list) {
        size_t n = strcspn(list, ",");
        if (n == len && memcmp(list, word, n) == 0)
            return true;
        list += n + (list[n] == ',');
    }
    return false;
}

static uint32_t tier_in(const char *groups, const char *second_groups, const struct bookie *k)
{
    const char *group = k->group ? k->group : "";

    if (lists(groups, group))
        return 0;
    return lists(second_groups, group) ? 1 : PLACEMENT_EXCLUDED;
}

/* A ledger that wishes for no group is kept out of all of them. */
static uint32_t tier_of(const struct bookies *b, const struct placement_record *wish,
                        const struct bookie *k)
{
    if (wish && lists(wish->groups, "*"))
        return 0;
    if (wish && !wish->groups[0] && !wish->second_groups[0])
        return k->group ? PLACEMENT_EXCLUDED : 0;
    if (wish)
        return tier_in(wish->groups, wish->second_groups, k);
    if (!b->groups[0] && !b->second_groups[0])
        return 0;
    return tier_in(b->groups, b->second_groups, k);
}

static bool is_suspect(const struct bookies *b, const struct bookie *k)
{
    return loop_now(b->loop) < k->suspect_until;
}

/* And has not said since that it is there. */
static bool failed_just_now(const struct bookies *b, const struct bookie *k)
{
    return k->fresh && loop_now(b->loop) < k->struck_at + RECENT_US;
}

/* All of them, with those excluded that cannot take a slot. */
static struct placement_bookie *describe(const struct bookies *b,
                                         const struct placement_record *wish, bool all_suspects)
{
    struct placement_bookie *all = mem_alloc((b->n + 1) * sizeof *all);

    for (uint32_t i = 0; i < b->n; i++) {
        const struct bookie *k = b->at[i];
        bool can = k->writable && !link_is_down(k->link[LINK_PLAIN]);
        can = can && (all_suspects || !failed_just_now(b, k));
        all[i] = (struct placement_bookie){
            .bookie = i,
            .host = k->host_no,
            .rack = k->rack_no,
            .region = k->region_no,
            .tier = can ? tier_of(b, wish, k) : PLACEMENT_EXCLUDED,
            .uses = k->uses,
            .free = k->free,
            .suspect = is_suspect(b, k),
        };
    }
    return all;
}

static struct placement_rules rules_of(const struct bookies *b, struct quorum q)
{
    return (struct placement_rules){.quorum = q,
                                    .distinct_hosts = b->place.distinct_hosts,
                                    .racks = b->place.racks,
                                    .regions = b->place.regions,
                                    .racks_min = b->place.racks_min,
                                    .enforce_racks = b->place.enforce_racks,
                                    .by_free_space = b->place.by_free_space,
                                    .free_multiple = b->place.free_multiple};
}

enum err bookies_choose(struct bookies *b, const struct bookies_wish *w, uint32_t *out)
{
    struct placement_bookie *all = describe(b, w->groups, true);
    const struct quorum q = w->quorum;
    struct placement_rules rules = rules_of(b, q);
    uint32_t member[ENSEMBLE_MAX];

    for (unsigned i = 0; i < q.ensemble; i++)
        member[i] = PLACEMENT_NOBODY;
    enum err err = placement_fill(&rules, all, b->n, member, &b->seed);
    mem_free(all);
    if (!err)
        memcpy(out, member, q.ensemble * sizeof *out);
    return err;
}

bool bookies_replace(struct bookies *b, const struct bookies_wish *w, const uint32_t *members,
                     unsigned slot, bool must, uint32_t *out)
{
    struct placement_bookie *all = describe(b, w->groups, must);
    const struct quorum q = w->quorum;
    struct placement_rules rules = rules_of(b, q);
    uint32_t member[ENSEMBLE_MAX], old = members[slot];

    memcpy(member, members, q.ensemble * sizeof *member);
    all[old].tier = PLACEMENT_EXCLUDED;
    member[slot] = PLACEMENT_NOBODY;
    enum err err = placement_fill(&rules, all, b->n, member, &b->seed);
    mem_free(all);
    *out = err ? old : member[slot];
    return err == ERR_OK;
}

/* Of a recovery: copies that lie close together are better than none. */
bool bookies_spare(struct bookies *b, const struct placement_record *groups,
                   const uint32_t *not_these, unsigned n, uint32_t *out)
{
    struct placement_bookie *all = describe(b, groups, true);
    unsigned seen = n < ENSEMBLE_MAX ? n : ENSEMBLE_MAX - 1;
    struct placement_rules rules = rules_of(b, (struct quorum){seen + 1, seen + 1, 1});
    uint32_t member[ENSEMBLE_MAX];

    rules.distinct_hosts = rules.enforce_racks = false;
    for (unsigned i = 0; i < n; i++)
        all[not_these[i]].tier = PLACEMENT_EXCLUDED;
    memcpy(member, not_these, seen * sizeof *member);
    member[seen] = PLACEMENT_NOBODY;
    enum err err = placement_fill(&rules, all, b->n, member, &b->seed);
    mem_free(all);
    *out = member[seen];
    return err == ERR_OK;
}

void bookies_use(struct bookies *b, uint32_t number, int by)
{
    bookie_of(b, number)->uses += (uint32_t)by;
}

uint32_t bookies_count(const struct bookies *b)
{
    return b->n;
}

bool bookies_is_writable(const struct bookies *b, uint32_t number)
{
    return bookie_of(b, number)->writable;
}

void bookies_set_free(struct bookies *b, uint32_t number, uint64_t bytes)
{
    bookie_of(b, number)->free = bytes;
}

void bookies_suspect(struct bookies *b, uint32_t number)
{
    struct bookie *k = bookie_of(b, number);
    uint64_t now = loop_now(b->loop), since = now - k->struck_at, us = SUSPECT_FIRST_US;

    if (k->strikes > 0 && since < SAME_FAILURE_US)
        return;
    k->strikes = since / FORGIVEN_US < 32 ? k->strikes >> since / FORGIVEN_US : 0;
    us <<= k->strikes;
    k->strikes += k->strikes < STRIKES_MAX;
    k->struck_at = now;
    k->fresh = true;
    k->suspect_until = now + (us < b->place.suspect_max_us ? us : b->place.suspect_max_us);
}

/* ---- life ---- */

struct bookies *bookies_new(struct loop *l, struct metadata *meta, const struct link_conf *conf,
                            const struct placement_conf *place)
{
    struct bookies *b = mem_new(struct bookies);

    b->loop = l;
    b->meta = meta;
    b->conf = *conf;
    b->place = *place;
    if (!b->place.suspect_max_us)
        b->place.suspect_max_us = SUSPECT_MAX_US;
    b->groups = mem_string(place->groups ? place->groups : "");
    b->second_groups = mem_string(place->second_groups ? place->second_groups : "");
    b->seed = rng_seed();
    b->retry.run = retry_now;
    list_init(&b->watchers);
    b->watch = (struct meta_watch){.home = l, .changed = changed};
    meta_watch(meta, PATH_BOOKIES, &b->watch);
    list(b);
    b->racks = bookie_racks_new(l, meta, b);
    if (place->by_free_space)
        b->space = bookie_space_new(l, b, place->space_look_us, place->space_retry_us);
    return b;
}

void bookies_drop(struct bookies **bookies)
{
    struct bookies *b = *bookies;

    *bookies = NULL;
    if (!b)
        return;
    bookie_racks_drop(&b->racks);
    bookie_space_drop(&b->space);
    meta_unwatch(b->meta, &b->watch);
    loop_cancel(b->loop, &b->retry);
    b->gone = true;
    if (b->listing == LIST_RESTING)
        end(b);
}

bool bookies_ready(const struct bookies *b)
{
    return b->listed && b->placed;
}

unsigned bookies_writable(const struct bookies *b)
{
    unsigned hosts = 0;

    if (!b->place.distinct_hosts)
        return b->writable;
    for (uint32_t i = 0; i < b->n; i++) {
        bool first = b->at[i]->writable;
        for (uint32_t k = 0; k < i && first; k++)
            first = !b->at[k]->writable || b->at[k]->host_no != b->at[i]->host_no;
        hosts += first;
    }
    return hosts;
}

void bookies_watch(struct bookies *b, struct bookies_watch *w)
{
    list_push_back(&b->watchers, &w->node);
}

void bookies_unwatch(struct bookies *b, struct bookies_watch *w)
{
    (void)b;
    list_remove(&w->node);
}
