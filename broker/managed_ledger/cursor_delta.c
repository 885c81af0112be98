#include "broker/managed_ledger/cursor_delta.h"

#include <assert.h>
#include <string.h>

#include "broker/managed_ledger/cursor_roaring.h"
#include "common/mem.h"
#include "proto/wire.h"

enum {
    MAGIC = 0x4c474d63, /* "LGMc" */
    VERSION = 1,
    OLDEST_READER = 1, /* what we write may be read by readers from this version on */
    FLAG_RESET = 1,
    HEAD_BYTES = 16,
    PART_BYTES = 8,
    POSITION_BYTES = 16,
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

struct slice cursor_delta_changes(int64_t snapshot, bool reset, struct position mark_delete,
                                  const struct cursor_set *fresh)
{
    uint64_t most = HEAD_BYTES + POSITION_BYTES + VARINT_BYTES +
                    fresh->n * (uint64_t)(8 + VARINT_BYTES) +
                    cursor_set_runs(fresh, INT64_MIN) * VARINT_BYTES;
    struct writer w = {0};
    struct slab *slab;

    if (most > CURSOR_DELTA_ENTRY_MAX)
        return (struct slice){0};
    slab = slab_new((size_t)most);
    w = (struct writer){.base = slab_bytes(slab), .room = (size_t)most};
    write_head(&w, CURSOR_DELTA_CHANGES, reset ? FLAG_RESET : 0, snapshot);
    write_position(&w, mark_delete);
    write_runs(&w, fresh);
    return slice_take(&slab, w.len);
}

static size_t body_size(const struct cursor_set *beyond)
{
    size_t size = POSITION_BYTES + 4;

    for (unsigned i = 0; i < beyond->n; i++) {
        roaring_bitmap_run_optimize(beyond->at[i].entries);
        size += 12 + roaring_bitmap_portable_size_in_bytes(beyond->at[i].entries);
    }
    return size;
}

static void write_body(struct writer *w, struct position mark_delete,
                       const struct cursor_set *beyond)
{
    write_position(w, mark_delete);
    write_u32(w, beyond->n);
    for (unsigned i = 0; i < beyond->n; i++) {
        const roaring_bitmap_t *bits = beyond->at[i].entries;
        size_t size = roaring_bitmap_portable_size_in_bytes(bits);
        write_i64(w, beyond->at[i].ledger);
        write_u32(w, (uint32_t)size);
        assert(w->room - w->len >= size);
        w->len += roaring_bitmap_portable_serialize(bits, (char *)w->base + w->len);
    }
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

unsigned cursor_delta_snapshot(int64_t before, struct position mark_delete,
                               const struct cursor_set *beyond, struct slice **parts)
{
    size_t size = body_size(beyond);
    struct writer w = {.room = size};
    unsigned n = (unsigned)((size + PIECE_MAX - 1) / PIECE_MAX);

    *parts = NULL;
    if (size > (size_t)CURSOR_DELTA_PARTS_MAX * PIECE_MAX)
        return 0;
    w.base = mem_alloc(size);
    write_body(&w, mark_delete, beyond);
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

/* A newer writer that lets us read may have put more behind what we know: `newer`. */
static enum err read_head(struct reader *r, struct cursor_delta_head *out, bool *newer)
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
    *newer = version > VERSION;
    TRY(read_i64(r, &out->snapshot));
    if ((kind != CURSOR_DELTA_CHANGES && kind != CURSOR_DELTA_SNAPSHOT) ||
        out->snapshot < CURSOR_DELTA_NOWHERE || (flags & ~FLAG_RESET && !*newer))
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
    bool newer;

    return read_head(&r, out, &newer);
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

static enum err apply_changes(struct cursor_acks *a, struct reader *r, bool reset, bool newer)
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
    return newer || reader_left(r) == 0 ? ERR_OK : ERR_MALFORMED;
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

static enum err apply_snapshot(struct cursor_acks *a, struct view body, bool newer)
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
    return newer || reader_left(&r) == 0 ? ERR_OK : ERR_MALFORMED;
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
                          struct view piece, bool newer)
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
    return apply_snapshot(r->acks, view_of(r->gathered, r->len), newer);
}

enum err cursor_replay_feed(struct cursor_replay *r, int64_t id, struct view entry)
{
    struct reader at = reader_of(entry);
    struct cursor_delta_head head;
    bool newer;

    if (entry.len > CURSOR_DELTA_ENTRY_MAX)
        return ERR_MALFORMED;
    TRY(read_head(&at, &head, &newer));
    if (head.kind == CURSOR_DELTA_SNAPSHOT)
        return feed_part(r, id, &head, view_of(at.at, reader_left(&at)), newer);
    if (r->parts || head.snapshot != r->snapshot)
        return ERR_MALFORMED;
    return apply_changes(r->acks, &at, head.reset, newer);
}

enum err cursor_replay_end(struct cursor_replay *r)
{
    if (r->snapshot == CURSOR_DELTA_NOWHERE)
        return ERR_NO_ENTRY;
    cursor_acks_settle(r->acks);
    return ERR_OK;
}
