#include <stdlib.h>

#include "broker/managed_ledger/cursor_delta.h"
#include "broker/managed_ledger/cursor_record.h"
#include "broker/managed_ledger/cursor_roaring.h"
#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ranges come in order, with a gap between them. */
struct ordered {
    struct cursor_roaring_sink sink;
    int64_t last;
};

static void in_order(struct cursor_roaring_sink *s, uint32_t first, uint32_t last)
{
    struct ordered *o = container_of(s, struct ordered, sink);

    if (first > last || first <= o->last + 1)
        abort();
    o->last = last;
}

static void roaring(struct view bytes)
{
    struct ordered o = {.sink.range = in_order, .last = -2};
    enum err err = cursor_roaring_read(bytes, &o.sink);

    if (err != ERR_OK && err != ERR_MALFORMED)
        abort();
}

/* What could be read must come back the same from a snapshot of ours. */
static void comes_back(const struct segments *segments, const struct cursor_acks *acks)
{
    struct cursor_acks again;
    struct cursor_replay r;
    struct slice *parts;
    unsigned n = cursor_delta_snapshot(-1, acks, &parts);

    cursor_acks_init(&again, segments, POSITION_EARLIEST);
    cursor_replay_init(&r, &again);
    for (unsigned i = 0; i < n; i++) {
        if (cursor_replay_feed(&r, i, slice_view(parts[i])))
            abort();
        slice_drop(&parts[i]);
    }
    mem_free(parts);
    if (cursor_replay_end(&r) || !position_equal(again.mark_delete, acks->mark_delete) ||
        cursor_acks_backlog(&again) != cursor_acks_backlog(acks) ||
        cursor_acks_holes(&again) != cursor_acks_holes(acks))
        abort();
    cursor_replay_drop(&r);
    cursor_acks_drop(&again);
}

/* Two entries, split where the first byte says; then each as the one that is the ledger's last. */
static void entries(const struct segments *segments, struct view bytes)
{
    size_t cut = bytes.len > 1 ? bytes.base[0] % bytes.len : 0;
    struct view first = view_of(bytes.base + (bytes.len > 0), cut ? cut - 1 : 0);
    struct view second = view_of(bytes.base + cut, bytes.len - cut);
    struct cursor_acks acks;
    struct cursor_replay r;
    int64_t start;

    cursor_acks_init(&acks, segments, POSITION_EARLIEST);
    cursor_replay_init(&r, &acks);
    if (cursor_replay_feed(&r, 0, first) == ERR_OK && cursor_replay_feed(&r, 1, second) == ERR_OK &&
        cursor_replay_end(&r) == ERR_OK)
        comes_back(segments, &acks);
    cursor_replay_drop(&r);
    cursor_acks_drop(&acks);
    cursor_acks_init(&acks, segments, POSITION_EARLIEST);
    cursor_replay_init(&r, &acks);
    if (cursor_replay_feed(&r, 0, bytes) == ERR_OK && cursor_replay_end(&r) == ERR_OK)
        comes_back(segments, &acks);
    cursor_replay_drop(&r);
    cursor_acks_drop(&acks);
    if (cursor_delta_start(bytes, 9, &start) == ERR_OK && (start < 0 || start > 9))
        abort();
}

static void position(const struct segments *segments, struct view bytes)
{
    ManagedLedger__ManagedCursorInfo *r = mem_new(ManagedLedger__ManagedCursorInfo);
    struct cursor_acks acks;

    managed_ledger__managed_cursor_info__init(r);
    cursor_acks_init(&acks, segments, POSITION_EARLIEST);
    if (cursor_position_read(bytes, &acks, r) == ERR_OK)
        comes_back(segments, &acks);
    cursor_acks_drop(&acks);
    managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct segments s = {0};

    if (size == 0)
        return 0;
    segments_add(&s, (struct segment){.ledger = 0, .entries = 300});
    segments_add(&s, (struct segment){.ledger = 1, .entries = 200000});
    segments_add(&s, (struct segment){.ledger = 3, .entries = 0});
    segments_add(&s, (struct segment){.ledger = 4, .entries = 5000});
    roaring(view_of(data, size));
    entries(&s, view_of(data, size));
    position(&s, view_of(data, size));
    segments_clear(&s);
    return 0;
}
