#include "bookie/journal_draft.h"

#include <string.h>

#include "bookie/journal_format.h"
#include "common/mem.h"

void journal_writes_init(struct journal_writes *q)
{
    q->first = NULL;
    q->end = &q->first;
}

void journal_writes_put(struct journal_writes *q, struct journal_write *w)
{
    w->next = NULL;
    *q->end = w;
    q->end = &w->next;
}

void draft_init(struct journal_draft *d, size_t room, size_t limit)
{
    *d = (struct journal_draft){.room = journal_blocks(room), .limit = limit};
    d->memory = mem_alloc(d->room + JOURNAL_BLOCK);
    const uintptr_t at = (uintptr_t)d->memory;
    d->bytes = d->memory + (journal_blocks(at) - at);
    memset(d->bytes, 0, d->room); /* touched now and not at the first adds */
    journal_writes_init(&d->writes);
}

void draft_end(struct journal_draft *d)
{
    mem_free(d->memory);
}

void draft_reset(struct journal_draft *d)
{
    d->len = 0;
    d->cost = d->n = 0;
    d->has_early = false;
    journal_writes_init(&d->writes);
}

static size_t record_size(const struct journal_write *w)
{
    return w->kind == JOURNAL_MARKER ? 0 : journal_record_size(w->head.len + w->body.len);
}

uint64_t journal_write_cost(const struct journal_write *w)
{
    return journal_record_size(w->head.len + w->body.len) + 256;
}

bool draft_reserve(struct journal_draft *d, struct journal_write *w, size_t *at)
{
    const size_t size = record_size(w);

    if (d->len > 0 && d->len + size > d->limit)
        return false;
    *at = d->len;
    d->len += size;
    d->cost += journal_write_cost(w);
    d->n++;
    d->has_early |= w->is_early;
    d->copying++;
    journal_writes_put(&d->writes, w);
    return true;
}

void draft_copy(struct journal_draft *d, size_t at, struct journal_write *w)
{
    if (w->kind != JOURNAL_MARKER)
        journal_record_draft(d->bytes + at, w->kind, w->head, slice_view(w->body));
    slice_drop(&w->body);
}

size_t draft_seal(struct journal_draft *d, uint64_t file, uint64_t *sequence)
{
    const uint64_t group = *sequence;
    const size_t whole = journal_blocks(d->len);

    for (size_t at = 0; at < d->len;)
        at += journal_record_seal(d->bytes + at, file, (*sequence)++, group);
    memset(d->bytes + d->len, 0, whole - d->len);
    return whole;
}
