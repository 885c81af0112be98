#include "broker/managed_ledger/cursor_record.h"

#include <string.h>

#include "common/mem.h"

enum { WORD_BITS = 64, RANGE_BYTES_MIN = 14 };

struct position cursor_record_mark_delete(const ManagedLedger__ManagedCursorInfo *r)
{
    if (!r->has_markdeleteledgerid || !r->has_markdeleteentryid)
        return POSITION_EARLIEST;
    return (struct position){r->markdeleteledgerid, r->markdeleteentryid};
}

/* ---- reading ------------------------------------------------------------------------------- */

static struct position position_of(const ManagedLedger__NestedPositionInfo *p)
{
    return (struct position){p->ledgerid, p->entryid};
}

static void load_ranges(struct cursor_acks *acks, ManagedLedger__MessageRange **ranges, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cursor_acks_load_range(acks, position_of(ranges[i]->lowerendpoint),
                               position_of(ranges[i]->upperendpoint));
}

static void load_parts(struct cursor_acks *acks,
                       ManagedLedger__BatchedEntryDeletionIndexInfo **parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const ManagedLedger__BatchedEntryDeletionIndexInfo *p = parts[i];
        uint64_t words[CURSOR_PART_WORDS];
        if (p->n_deleteset > CURSOR_PART_WORDS)
            continue;
        for (size_t k = 0; k < p->n_deleteset; k++)
            words[k] = (uint64_t)p->deleteset[k];
        cursor_acks_load_part(acks, position_of(p->position), words, (unsigned)p->n_deleteset);
    }
}

void cursor_record_load(const ManagedLedger__ManagedCursorInfo *r, struct cursor_acks *acks)
{
    cursor_acks_load_reset(acks, cursor_record_mark_delete(r));
    load_ranges(acks, r->individualdeletedmessages, r->n_individualdeletedmessages);
    load_parts(acks, r->batchedentrydeletionindexinfo, r->n_batchedentrydeletionindexinfo);
    cursor_acks_settle(acks);
}

static bool bit_of(const ManagedLedger__LongListMap *m, int64_t bit)
{
    return (uint64_t)m->values[bit / WORD_BITS] >> (bit % WORD_BITS) & 1;
}

static void load_words(struct cursor_acks *acks, const ManagedLedger__LongListMap *m)
{
    int64_t bits = (int64_t)m->n_values * WORD_BITS;

    for (int64_t bit = 0; bit < bits; bit++) {
        int64_t first = bit;
        while (bit < bits && bit_of(m, bit))
            bit++;
        if (bit > first)
            cursor_acks_load_range(acks, (struct position){m->key, first - 1},
                                   (struct position){m->key, bit - 1});
    }
}

/* With such an entry, field 6 are not words. */
static bool is_of_a_log(const ManagedLedger__PositionInfo *p)
{
    for (size_t i = 0; i < p->n_properties; i++)
        if (strcmp(p->properties[i]->name, "entry-type") == 0)
            return true;
    return false;
}

static void load_position(const ManagedLedger__PositionInfo *p, struct cursor_acks *acks)
{
    cursor_acks_load_reset(acks, (struct position){p->ledgerid, p->entryid});
    load_ranges(acks, p->individualdeletedmessages, p->n_individualdeletedmessages);
    if (p->n_individualdeletedmessages == 0)
        for (size_t i = 0; i < p->n_individualdeletedmessageranges; i++)
            load_words(acks, p->individualdeletedmessageranges[i]);
    load_parts(acks, p->batchedentrydeletionindexinfo, p->n_batchedentrydeletionindexinfo);
    cursor_acks_settle(acks);
}

enum err cursor_position_read(struct view entry, struct cursor_acks *acks,
                              ManagedLedger__ManagedCursorInfo *r)
{
    ManagedLedger__PositionInfo *p =
        managed_ledger__position_info__unpack(NULL, entry.len, entry.base);
    ManagedLedger__LongProperty **properties;
    size_t n;

    if (!p)
        return ERR_MALFORMED;
    if (is_of_a_log(p)) {
        managed_ledger__position_info__free_unpacked(p, NULL);
        return ERR_UNSUPPORTED_VERSION;
    }
    load_position(p, acks);
    properties = r->properties;
    n = r->n_properties;
    r->properties = p->properties;
    r->n_properties = p->n_properties;
    p->properties = properties;
    p->n_properties = n;
    managed_ledger__position_info__free_unpacked(p, NULL);
    return ERR_OK;
}

/* ---- its users' words ---------------------------------------------------------------------- */

void cursor_record_labels(const ManagedLedger__ManagedCursorInfo *r, struct pairs *out)
{
    for (size_t i = 0; i < r->n_cursorproperties; i++)
        pairs_set(out, r->cursorproperties[i]->name, r->cursorproperties[i]->value);
}

static void drop_labels(ManagedLedger__ManagedCursorInfo *r)
{
    for (size_t i = 0; i < r->n_cursorproperties; i++)
        managed_ledger__string_property__free_unpacked(r->cursorproperties[i], NULL);
    mem_free(r->cursorproperties);
    r->cursorproperties = NULL;
    r->n_cursorproperties = 0;
}

void cursor_record_label(ManagedLedger__ManagedCursorInfo *r, const struct pairs *labels)
{
    drop_labels(r);
    if (labels->n == 0)
        return;
    r->cursorproperties = mem_alloc(labels->n * sizeof(r->cursorproperties[0]));
    for (unsigned i = 0; i < labels->n; i++) {
        ManagedLedger__StringProperty *one = mem_new(ManagedLedger__StringProperty);
        managed_ledger__string_property__init(one);
        one->name = mem_string(labels->at[i].name);
        one->value = mem_string(labels->at[i].value);
        r->cursorproperties[r->n_cursorproperties++] = one;
    }
}

/* ---- writing ------------------------------------------------------------------------------- */

struct ranges {
    size_t n;
    ManagedLedger__MessageRange **at, *range;
    ManagedLedger__NestedPositionInfo *ends;
};

static struct ranges ranges_of(const struct cursor_acks *acks)
{
    size_t n = (size_t)cursor_set_runs(&acks->beyond, INT64_MIN);
    struct cursor_set_walk w = cursor_set_walk(&acks->beyond);
    struct ranges r = {
        .n = n,
        .at = mem_alloc((n + 1) * sizeof(*r.at)),
        .range = mem_alloc((n + 1) * sizeof(*r.range)),
        .ends = mem_alloc((n + 1) * 2 * sizeof(*r.ends)),
    };

    for (size_t i = 0; i < n && cursor_set_walk_next(&w); i++) {
        ManagedLedger__NestedPositionInfo *lower = &r.ends[2 * i], *upper = lower + 1;
        managed_ledger__nested_position_info__init(lower);
        managed_ledger__nested_position_info__init(upper);
        managed_ledger__message_range__init(&r.range[i]);
        lower->ledgerid = upper->ledgerid = w.ledger;
        lower->entryid = w.first - 1;
        upper->entryid = w.last;
        r.range[i].lowerendpoint = lower;
        r.range[i].upperendpoint = upper;
        r.at[i] = &r.range[i];
    }
    return r;
}

static void ranges_drop(struct ranges *r)
{
    mem_free(r->at);
    mem_free(r->range);
    mem_free(r->ends);
}

struct parts {
    size_t n;
    ManagedLedger__BatchedEntryDeletionIndexInfo **at, *part;
    ManagedLedger__NestedPositionInfo *where;
    int64_t *words;
};

static struct parts parts_of(const struct cursor_parts *all)
{
    size_t n = cursor_parts_count(all), words = 0;
    struct parts r = {
        .n = n,
        .at = mem_alloc((n + 1) * sizeof(*r.at)),
        .part = mem_alloc((n + 1) * sizeof(*r.part)),
        .where = mem_alloc((n + 1) * sizeof(*r.where)),
        .words = mem_alloc((all->words + 1) * sizeof(*r.words)),
    };
    const struct cursor_part *p = NULL;

    for (size_t i = 0; (p = cursor_parts_next(all, p)); i++) {
        managed_ledger__nested_position_info__init(&r.where[i]);
        managed_ledger__batched_entry_deletion_index_info__init(&r.part[i]);
        r.where[i].ledgerid = p->at.ledger;
        r.where[i].entryid = p->at.entry;
        r.part[i].position = &r.where[i];
        r.part[i].n_deleteset = p->n;
        r.part[i].deleteset = r.words + words;
        memcpy(r.words + words, p->words, p->n * sizeof(p->words[0]));
        words += p->n;
        r.at[i] = &r.part[i];
    }
    return r;
}

static void parts_drop(struct parts *r)
{
    mem_free(r->at);
    mem_free(r->part);
    mem_free(r->where);
    mem_free(r->words);
}

struct slice cursor_record_make(const ManagedLedger__ManagedCursorInfo *base, int64_t ledger,
                                struct position mark_delete, const struct cursor_acks *acks)
{
    ManagedLedger__ManagedCursorInfo r = *base; /* shallow: nothing in it is ended here */
    struct ranges ranges = {0};
    struct parts parts = {0};
    struct slice value;

    if (acks) {
        ranges = ranges_of(acks);
        parts = parts_of(&acks->parts);
    }
    r.cursorsledgerid = ledger;
    r.has_markdeleteledgerid = r.has_markdeleteentryid = 1;
    r.markdeleteledgerid = mark_delete.ledger;
    r.markdeleteentryid = mark_delete.entry;
    r.individualdeletedmessages = ranges.at;
    r.n_individualdeletedmessages = ranges.n;
    r.batchedentrydeletionindexinfo = parts.at;
    r.n_batchedentrydeletionindexinfo = parts.n;
    value = cursor_record_write(&r);
    ranges_drop(&ranges);
    parts_drop(&parts);
    return value;
}

static struct slice pack(const ManagedLedger__PositionInfo *p)
{
    size_t size = managed_ledger__position_info__get_packed_size(p);
    struct slab *slab;

    if (size > CURSOR_RECORD_ENTRY_MAX)
        return (struct slice){0};
    slab = slab_new(size);
    managed_ledger__position_info__pack(p, slab_bytes(slab));
    return slice_take(&slab, size);
}

static struct slice pack_ranges(ManagedLedger__PositionInfo *p, const struct cursor_acks *acks)
{
    struct ranges ranges;
    struct slice entry;

    if (cursor_set_runs(&acks->beyond, INT64_MIN) > CURSOR_RECORD_ENTRY_MAX / RANGE_BYTES_MIN)
        return (struct slice){0};
    ranges = ranges_of(acks);
    p->individualdeletedmessages = ranges.at;
    p->n_individualdeletedmessages = ranges.n;
    entry = pack(p);
    ranges_drop(&ranges);
    p->n_individualdeletedmessages = 0;
    return entry;
}

static void set_words(ManagedLedger__LongListMap *m, const struct cursor_set_ledger *l)
{
    roaring_uint32_iterator_t it;

    managed_ledger__long_list_map__init(m);
    m->key = l->ledger;
    m->n_values = (size_t)roaring_bitmap_maximum(l->entries) / WORD_BITS + 1;
    m->values = mem_alloc(m->n_values * sizeof(*m->values));
    for (roaring_init_iterator(l->entries, &it); it.has_value;
         roaring_advance_uint32_iterator(&it)) {
        uint64_t word = (uint64_t)m->values[it.current_value / WORD_BITS];
        word |= UINT64_C(1) << it.current_value % WORD_BITS;
        m->values[it.current_value / WORD_BITS] = (int64_t)word;
    }
}

/* Words instead of ranges: so many holes take less room, and newer Pulsars read it too. */
static struct slice pack_words(ManagedLedger__PositionInfo *p, const struct cursor_acks *acks)
{
    unsigned n = acks->beyond.n;
    ManagedLedger__LongListMap *maps, **at;
    uint64_t words = 0;
    struct slice entry;

    for (unsigned i = 0; i < n; i++)
        words += roaring_bitmap_maximum(acks->beyond.at[i].entries) / WORD_BITS + 1;
    if (words > CURSOR_RECORD_ENTRY_MAX / 2) /* a word has two bytes at least */
        return (struct slice){0};
    maps = mem_alloc((n + 1) * sizeof(*maps));
    at = mem_alloc((n + 1) * sizeof(*at));
    for (unsigned i = 0; i < n; i++) {
        set_words(&maps[i], &acks->beyond.at[i]);
        at[i] = &maps[i];
    }
    p->individualdeletedmessageranges = at;
    p->n_individualdeletedmessageranges = n;
    entry = pack(p);
    for (unsigned i = 0; i < n; i++)
        mem_free(maps[i].values);
    mem_free(maps);
    mem_free(at);
    return entry;
}

struct slice cursor_position_write(const struct cursor_acks *acks,
                                   const ManagedLedger__ManagedCursorInfo *r)
{
    ManagedLedger__PositionInfo p;
    struct parts parts = parts_of(&acks->parts);
    struct slice entry;

    managed_ledger__position_info__init(&p);
    p.ledgerid = acks->mark_delete.ledger;
    p.entryid = acks->mark_delete.entry;
    p.properties = r->properties;
    p.n_properties = r->n_properties;
    p.batchedentrydeletionindexinfo = parts.at;
    p.n_batchedentrydeletionindexinfo = parts.n;
    entry = pack_ranges(&p, acks);
    if (!entry.len)
        entry = pack_words(&p, acks);
    parts_drop(&parts);
    return entry;
}
