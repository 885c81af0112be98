#include "broker/managed_ledger/cursor_delta.h"

#include <assert.h>
#include <string.h>

#include "broker/managed_ledger/cursor_roaring.h"
#include "common/mem.h"
#include "proto/wire.h"

enum {
    MAGIC = 0x4c474d63, /* "LGMc" */
    VERSION = 2,        /* 2: parts of batches, behind the rest */
    VERSION_PARTS = 2,
    OLDEST_READER = 1, /* what we write may be read by readers from this version on */
    FLAG_RESET = 1,
    HEAD_BYTES = 16,
    PART_BYTES = 8,
    POSITION_BYTES = 16,
    WORD_BYTES = 8,
    VARINT_BYTES = 10,
    PIECE_MAX = CURSOR_DELTA_ENTRY_MAX - HEAD_BYTES - PART_BYTES,
};

/* ---- writing ------------------------------------------------------------------------------- */

static void write_i64(struct writer *w, int64_t v)
{
    write_u64(w, (uint64_t)v);
}

static void write_head(struct writer *w, enum cursor_delta_kind kind, uint8_t flags,
                       int64_t snapshot)
{
    write_u32(w, MAGIC);
    write_u8(w, VERSION);
    write_u8(w, OLDEST_READER);
    write_u8(w, (uint8_t)kind);
    write_u8(w, flags);
    write_i64(w, snapshot);
}

static void write_position(struct writer *w, struct position p)
{
    write_i64(w, p.ledger);
    write_i64(w, p.entry);
}

/* Gaps and lengths: an entry here and there costs two or three bytes. */
static void write_runs(struct writer *w, const struct cursor_set *fresh)
{
    struct cursor_set_walk walk = cursor_set_walk(fresh);
    unsigned ledger = 0;
    uint64_t left = 0;
    int64_t from = 0;

    write_varint(w, fresh->n);
    while (cursor_set_walk_next(&walk)) {
        if (left == 0) {
            left = fresh->at[ledger].runs;
            from = 0;
            write_i64(w, fresh->at[ledger++].ledger);
            write_varint(w, left);
        }
        write_varint(w, (uint64_t)(walk.first - from));
        write_varint(w, (uint64_t)(walk.last - walk.first));
        from = walk.last + 2;
        left--;
    }
    assert(left == 0);
}

static void write_part(struct writer *w, const struct cursor_part *part)
{
    write_i64(w, part->at.ledger);
    write_varint(w, (uint64_t)part->at.entry);
    write_varint(w, part->n);
    for (unsigned i = 0; i < part->n; i++)
        write_u64(w, part->words[i]);
}

static uint64_t part_most(uint64_t parts, uint64_t words)
{
    return VARINT_BYTES + parts * (WORD_BYTES + 2 * VARINT_BYTES) + words * WORD_BYTES;
}

static bool next_changed(const struct cursor_parts *parts, const struct cursor_set *changed,
                         struct position *from, const struct cursor_part **out)
{
    while (cursor_set_first(changed, *from, from)) {
        *out = cursor_parts_find(parts, *from);
        from->entry++;
        if (*out)
            return true;
    }
    return false;
}

static uint64_t changed_parts(const struct cursor_parts *parts, const struct cursor_set *changed,
                              uint64_t *words)
{
    struct position from = POSITION_EARLIEST;
    const struct cursor_part *part;
    uint64_t n = 0;

    while (next_changed(parts, changed, &from, &part)) {
        n++;
        *words += part->n;
    }
    return n;
}

static void write_changed_parts(struct writer *w, const struct cursor_parts *parts,
                                const struct cursor_set *changed, uint64_t n)
{
    struct position from = POSITION_EARLIEST;
    const struct cursor_part *part;

    write_varint(w, n);
    while (n > 0 && next_changed(parts, changed, &from, &part))
        write_part(w, part);
}

struct slice cursor_delta_changes(int64_t snapshot, bool reset, struct position mark_delete,
                                  const struct cursor_set *fresh, const struct cursor_parts *parts,
                                  const struct cursor_set *changed)
{
    uint64_t words = 0, n_parts = changed ? changed_parts(parts, changed, &words) : 0;
    uint64_t most = HEAD_BYTES + POSITION_BYTES + VARINT_BYTES +
                    fresh->n * (uint64_t)(8 + VARINT_BYTES) +
                    cursor_set_runs(fresh, INT64_MIN) * VARINT_BYTES + part_most(n_parts, words);
    struct writer w = {0};
    struct slab *slab;

    if (most > CURSOR_DELTA_ENTRY_MAX)
        return (struct slice){0};
    slab = slab_new((size_t)most);
    w = (struct writer){.base = slab_bytes(slab), .room = (size_t)most};
    write_head(&w, CURSOR_DELTA_CHANGES, reset ? FLAG_RESET : 0, snapshot);
    write_position(&w, mark_delete);
    write_runs(&w, fresh);
    write_changed_parts(&w, parts, changed, n_parts);
    return slice_take(&slab, w.len);
}

static size_t body_size(const struct cursor_acks *acks)
{
    const struct cursor_set *beyond = &acks->beyond;
    size_t size = POSITION_BYTES + 4;

    size += (size_t)part_most(cursor_parts_count(&acks->parts), acks->parts.words);

    for (unsigned i = 0; i < beyond->n; i++) {
        roaring_bitmap_run_optimize(beyond->at[i].entries);
        size += 12 + roaring_bitmap_portable_size_in_bytes(beyond->at[i].entries);
    }
    return size;
}

static void write_parts(struct writer *w, const struct cursor_parts *parts)
{
    const struct cursor_part *part = NULL;

    write_varint(w, cursor_parts_count(parts));
    while ((part = cursor_parts_next(parts, part)))
        write_part(w, part);
}

static void write_body(struct writer *w, const struct cursor_acks *acks)
{
    const struct cursor_set *beyond = &acks->beyond;

    write_position(w, acks->mark_delete);
    write_u32(w, beyond->n);
    for (unsigned i = 0; i < beyond->n; i++) {
        const roaring_bitmap_t *bits = beyond->at[i].entries;
        size_t size = roaring_bitmap_portable_size_in_bytes(bits);
        write_i64(w, beyond->at[i].ledger);
        write_u32(w, (uint32_t)size);
        assert(w->room - w->len >= size);
        w->len += roaring_bitmap_portable_serialize(bits, (char *)w->base + w->len);
    }
    write_parts(w, &acks->parts);
}

static struct slice part_of(const uint8_t *piece, size_t len, int64_t before, uint32_t part,
                            uint32_t parts)
{
    size_t size = HEAD_BYTES + PART_BYTES + len;
    struct slab *slab = slab_new(size);
    struct writer w = {.base = slab_bytes(slab), .room = size};

    write_head(&w, CURSOR_DELTA_SNAPSHOT, 0, before);
    write_u32(&w, part);
    write_u32(&w, parts);
    write_bytes(&w, piece, len);
    return slice_take(&slab, w.len);
}

unsigned cursor_delta_snapshot(int64_t before, const struct cursor_acks *acks, struct slice **parts)
{
    size_t size = body_size(acks);
    struct writer w = {.room = size};
    unsigned n;

    *parts = NULL;
    if (size > (size_t)CURSOR_DELTA_PARTS_MAX * PIECE_MAX)
        return 0;
    w.base = mem_alloc(size);
    write_body(&w, acks);
    n = (unsigned)((w.len + PIECE_MAX - 1) / PIECE_MAX);
    *parts = mem_alloc(n * sizeof(**parts));
    for (unsigned i = 0; i < n; i++) {
        size_t at = (size_t)i * PIECE_MAX, left = w.len - at;
        (*parts)[i] = part_of(w.base + at, left < PIECE_MAX ? left : PIECE_MAX, before, i, n);
    }
    mem_free(w.base);
    return n;
}

/* ---- reading ------------------------------------------------------------------------------- */

bool cursor_delta_is_ours(struct view entry)
{
    struct reader r = reader_of(entry);
    uint32_t magic;

    return read_u32(&r, &magic) == ERR_OK && magic == MAGIC;
}

/* A newer writer that lets us read may have put more behind what we know. */
static enum err read_head(struct reader *r, struct cursor_delta_head *out, uint8_t *version_out)
{
    uint32_t magic;
    uint8_t version, oldest, kind, flags;

    TRY(read_u32(r, &magic));
    TRY(read_u8(r, &version));
    TRY(read_u8(r, &oldest));
    TRY(read_u8(r, &kind));
    TRY(read_u8(r, &flags));
    if (magic != MAGIC || version == 0 || oldest > version)
        return ERR_MALFORMED;
    if (oldest > VERSION)
        return ERR_UNSUPPORTED_VERSION;
    *version_out = version;
    TRY(read_i64(r, &out->snapshot));
    if ((kind != CURSOR_DELTA_CHANGES && kind != CURSOR_DELTA_SNAPSHOT) ||
        out->snapshot < CURSOR_DELTA_NOWHERE || (flags & ~FLAG_RESET && version <= VERSION))
        return ERR_MALFORMED;
    out->kind = (enum cursor_delta_kind)kind;
    out->reset = flags & FLAG_RESET;
    out->part = 0;
    out->parts = 0;
    if (out->kind == CURSOR_DELTA_CHANGES)
        return out->snapshot == CURSOR_DELTA_NOWHERE ? ERR_MALFORMED : ERR_OK;
    TRY(read_u32(r, &out->part));
    TRY(read_u32(r, &out->parts));
    if (out->part >= out->parts || out->parts > CURSOR_DELTA_PARTS_MAX || out->reset)
        return ERR_MALFORMED;
    return ERR_OK;
}

enum err cursor_delta_head(struct view entry, struct cursor_delta_head *out)
{
    struct reader r = reader_of(entry);
    uint8_t version;

    return read_head(&r, out, &version);
}

enum err cursor_delta_start(struct view last, int64_t id, int64_t *start)
{
    struct cursor_delta_head head;

    TRY(cursor_delta_head(last, &head));
    if (head.kind == CURSOR_DELTA_SNAPSHOT && head.part == head.parts - 1) {
        *start = id - head.part;
        return *start >= 0 ? ERR_OK : ERR_MALFORMED;
    }
    *start = head.snapshot;
    if (*start == CURSOR_DELTA_NOWHERE)
        return ERR_NO_ENTRY;
    return *start < id ? ERR_OK : ERR_MALFORMED;
}

static enum err read_position(struct reader *r, struct position *out)
{
    TRY(read_i64(r, &out->ledger));
    TRY(read_i64(r, &out->entry));
    return out->ledger >= -1 && out->entry >= -1 ? ERR_OK : ERR_MALFORMED;
}

static enum err read_runs_of(struct cursor_acks *a, struct reader *r, int64_t ledger)
{
    uint64_t runs, gap, more;
    int64_t from = 0;

    TRY(read_varint(r, &runs));
    for (uint64_t i = 0; i < runs; i++) {
        TRY(read_varint(r, &gap));
        TRY(read_varint(r, &more));
        if (gap > CURSOR_SET_ENTRY_MAX || more > CURSOR_SET_ENTRY_MAX ||
            from + (int64_t)gap + (int64_t)more > CURSOR_SET_ENTRY_MAX)
            return ERR_MALFORMED;
        from += (int64_t)gap;
        cursor_acks_load_range(a, (struct position){ledger, from - 1},
                               (struct position){ledger, from + (int64_t)more});
        from += (int64_t)more + 2;
    }
    return runs ? ERR_OK : ERR_MALFORMED;
}

static enum err read_ledger_id(struct reader *r, int64_t *before)
{
    int64_t ledger;

    TRY(read_i64(r, &ledger));
    if (ledger <= *before)
        return ERR_MALFORMED;
    *before = ledger;
    return ERR_OK;
}

static enum err read_part(struct cursor_acks *a, struct reader *r)
{
    uint64_t words[CURSOR_PART_WORDS], entry, n;
    struct position p;

    TRY(read_i64(r, &p.ledger));
    TRY(read_varint(r, &entry));
    TRY(read_varint(r, &n));
    if (p.ledger < 0 || entry > CURSOR_SET_ENTRY_MAX || n == 0 || n > CURSOR_PART_WORDS)
        return ERR_MALFORMED;
    for (uint64_t i = 0; i < n; i++)
        TRY(read_u64(r, &words[i]));
    p.entry = (int64_t)entry;
    cursor_acks_load_part(a, p, words, (unsigned)n);
    return ERR_OK;
}

/* What is behind the rest of an entry, or of a snapshot's pieces. */
static enum err read_end(struct cursor_acks *a, struct reader *r, uint8_t version)
{
    uint64_t n = 0;

    if (version >= VERSION_PARTS)
        TRY(read_varint(r, &n));
    for (uint64_t i = 0; i < n; i++)
        TRY(read_part(a, r));
    return version > VERSION || reader_left(r) == 0 ? ERR_OK : ERR_MALFORMED;
}

static enum err apply_changes(struct cursor_acks *a, struct reader *r, bool reset, uint8_t version)
{
    struct position mark_delete;
    uint64_t ledgers;
    int64_t ledger = -1;

    TRY(read_position(r, &mark_delete));
    if (reset)
        cursor_acks_load_reset(a, mark_delete);
    else
        cursor_acks_load_upto(a, mark_delete);
    TRY(read_varint(r, &ledgers));
    for (uint64_t i = 0; i < ledgers; i++) {
        TRY(read_ledger_id(r, &ledger));
        TRY(read_runs_of(a, r, ledger));
    }
    return read_end(a, r, version);
}

struct ledger_sink {
    struct cursor_roaring_sink sink;
    struct cursor_acks *acks;
    int64_t ledger;
};

static void add_range(struct cursor_roaring_sink *sink, uint32_t first, uint32_t last)
{
    struct ledger_sink *s = container_of(sink, struct ledger_sink, sink);

    cursor_acks_load_range(s->acks, (struct position){s->ledger, (int64_t)first - 1},
                           (struct position){s->ledger, last});
}

static enum err apply_snapshot(struct cursor_acks *a, struct view body, uint8_t version)
{
    struct reader r = reader_of(body);
    struct ledger_sink to = {.sink.range = add_range, .acks = a, .ledger = -1};
    struct position mark_delete;
    struct view bits;
    uint32_t ledgers, size;

    TRY(read_position(&r, &mark_delete));
    cursor_acks_load_reset(a, mark_delete);
    TRY(read_u32(&r, &ledgers));
    for (uint32_t i = 0; i < ledgers; i++) {
        TRY(read_ledger_id(&r, &to.ledger));
        TRY(read_u32(&r, &size));
        TRY(read_view(&r, size, &bits));
        TRY(cursor_roaring_read(bits, &to.sink));
    }
    return read_end(a, &r, version);
}

void cursor_replay_init(struct cursor_replay *r, struct cursor_acks *acks)
{
    *r = (struct cursor_replay){.acks = acks, .snapshot = CURSOR_DELTA_NOWHERE};
}

void cursor_replay_drop(struct cursor_replay *r)
{
    mem_free(r->gathered);
    r->gathered = NULL;
}

static void gather(struct cursor_replay *r, struct view piece)
{
    if (r->room - r->len < piece.len) {
        r->room = (r->len + piece.len) * 2;
        r->gathered = mem_resize(r->gathered, r->room);
    }
    if (piece.len)
        memcpy(r->gathered + r->len, piece.base, piece.len);
    r->len += piece.len;
}

static enum err feed_part(struct cursor_replay *r, int64_t id, const struct cursor_delta_head *head,
                          struct view piece, uint8_t version)
{
    if (head->part == 0 && r->parts == 0) {
        r->begun = id;
        r->parts = head->parts;
        r->part = 0;
        r->len = 0;
    }
    if (head->part != r->part || head->parts != r->parts || id != r->begun + head->part)
        return ERR_MALFORMED;
    gather(r, piece);
    if (++r->part < r->parts)
        return ERR_OK;
    r->parts = 0;
    r->snapshot = r->begun;
    return apply_snapshot(r->acks, view_of(r->gathered, r->len), version);
}

enum err cursor_replay_feed(struct cursor_replay *r, int64_t id, struct view entry)
{
    struct reader at = reader_of(entry);
    struct cursor_delta_head head;
    uint8_t version;

    if (entry.len > CURSOR_DELTA_ENTRY_MAX)
        return ERR_MALFORMED;
    TRY(read_head(&at, &head, &version));
    if (head.kind == CURSOR_DELTA_SNAPSHOT)
        return feed_part(r, id, &head, view_of(at.at, reader_left(&at)), version);
    if (r->parts || head.snapshot != r->snapshot)
        return ERR_MALFORMED;
    return apply_changes(r->acks, &at, head.reset, version);
}

enum err cursor_replay_end(struct cursor_replay *r)
{
    if (r->snapshot == CURSOR_DELTA_NOWHERE)
        return ERR_NO_ENTRY;
    cursor_acks_settle(r->acks);
    return ERR_OK;
}
