#include "common/buf.h"
#include "tests/sim/topic/topic.h"

/* One place a value, one value a place, for whoever looks, whenever. */
void check_entry(struct position at, unsigned v)
{
    struct log *l = log_of(at.ledger);
    struct value *value = &topic.value[v];

    if (!l || at.entry < 0 || at.entry >= LOG_ENTRIES) {
        topic_fault("value %u is at %d:%d, where nothing is", v, (int)at.ledger, (int)at.entry);
    } else if (l->value[at.entry] >= 0 && l->value[at.entry] != (int)v) {
        topic_fault("value %u is at %d:%d, where value %d was", v, (int)at.ledger, (int)at.entry,
                    l->value[at.entry]);
    } else if (value->at.ledger >= 0 && !position_equal(value->at, at)) {
        topic_fault("value %u is at %d:%d and at %d:%d", v, (int)at.ledger, (int)at.entry,
                    (int)value->at.ledger, (int)value->at.entry);
    } else {
        topic.tally->kept += value->at.ledger < 0 && value->state == VALUE_FAILED;
        l->value[at.entry] = (int)v;
        value->at = at;
    }
}

void check_acked(unsigned v, struct position at, uint64_t index)
{
    topic.value[v].index = index;
    check_entry(at, v);
    if (topic.terminated && position_compare(at, topic.end) > 0)
        topic_fault("value %u is confirmed at %d:%d, behind the end of the topic", v,
                    (int)at.ledger, (int)at.entry);
}

/* A ledger goes only when every cursor was done with it. */
void check_deleted(const struct log *l)
{
    if (l->of_cursor)
        return;
    topic.tally->trimmed += l->confirmed > 0;
    topic.tally->unused += l->confirmed == 0;
    for (unsigned c = 0; c < CURSORS; c++)
        for (int64_t e = 0; topic.has_cursor[c] && e < l->confirmed; e++)
            if (topic.ack[c][l->id][e] == ACK_NEVER)
                topic_fault("ledger %d is deleted, and cursor %u has not acknowledged entry %d",
                            (int)l->id, c, (int)e);
}

static void check_place(const struct owner *o, unsigned c, const struct cursor *cursor,
                        struct position p)
{
    bool acked = cursor_is_acked(cursor, p);
    enum ack_state truth = topic.ack[c][p.ledger][p.entry];

    if (!acked && truth == ACK_DURABLE && topic.acked_us[c][p.ledger][p.entry] < o->began_us)
        topic_fault("cursor %u has forgotten %d:%d", c, (int)p.ledger, (int)p.entry);
    if (acked && truth == ACK_NEVER && topic.reset_us[c] < o->began_us)
        topic_fault("cursor %u skips %d:%d, which nobody has acknowledged", c, (int)p.ledger,
                    (int)p.entry);
}

/* Nobody was told of it: what was trimmed before it was found is no loss. */
static void forgive(unsigned c, const struct segments *row)
{
    for (unsigned l = 0; l < topic.logs; l++)
        for (unsigned e = 0; !segments_find(row, l) && e < LOG_ENTRIES; e++)
            if (topic.ack[c][l][e] == ACK_NEVER)
                topic.ack[c][l][e] = ACK_MAYBE;
}

void check_cursors(const struct owner *o)
{
    static const char *const names[CURSORS] = {"a", "b", "c"};
    const struct segments *row = managed_ledger_segments(o->ml);

    for (unsigned c = 0; c < CURSORS; c++) {
        const struct cursor *cursor = managed_ledger_cursor(o->ml, names[c]);
        if (!cursor) {
            if (topic.has_cursor[c] && topic.made_us[c] < o->began_us)
                topic_fault("cursor %u is gone", c);
            continue;
        }
        if (c == LATE && topic.late_over) {
            if (topic.deleted_us && topic.deleted_us < o->began_us && topic.late_open == 0)
                topic_fault("cursor %u was deleted, and is back", c);
            continue;
        }
        if (!topic.has_cursor[c]) {
            forgive(c, row);
            topic.made_us[c] = topic.now;
            topic.has_cursor[c] = true;
        }
        for (unsigned i = 0; i < row->n; i++)
            for (int64_t e = 0; e < row->at[i].entries; e++)
                check_place(o, c, cursor, (struct position){row->at[i].ledger, e});
    }
}

/* What the row begins behind, everybody was done with. */
void check_row(const struct owner *o)
{
    const struct segments *row = managed_ledger_segments(o->ml);

    for (unsigned v = 0; v < topic.values; v++) {
        const struct value *value = &topic.value[v];
        if (value->state != VALUE_ACKED || value->acked_us >= o->began_us)
            continue;
        const struct segment *s = segments_find(row, value->at.ledger);
        if (s && value->at.entry >= s->entries)
            topic_fault("value %u was confirmed at %d:%d, and the ledger now has %d entries", v,
                        (int)value->at.ledger, (int)value->at.entry, (int)s->entries);
        for (unsigned c = 0; !s && c < CURSORS; c++)
            if (topic.has_cursor[c] && topic.ack[c][value->at.ledger][value->at.entry] == ACK_NEVER)
                topic_fault("value %u was confirmed at %d:%d, and is gone", v,
                            (int)value->at.ledger, (int)value->at.entry);
    }
}
