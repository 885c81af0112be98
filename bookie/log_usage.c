#include "bookie/log_usage.h"

#include <stdlib.h>

#include "common/mem.h"

enum { FIRST_ROOM = 64 };

static int by_ledger(const void *a, const void *b)
{
    const struct ledger_usage *x = a, *y = b;
    return (x->ledger > y->ledger) - (x->ledger < y->ledger);
}

void log_usage_sort(struct log_usage *u)
{
    size_t kept = 0;
    if (u->n == 0)
        return;
    qsort(u->at, u->n, sizeof u->at[0], by_ledger);
    for (size_t i = 1; i < u->n; i++)
        if (u->at[i].ledger == u->at[kept].ledger)
            u->at[kept].bytes += u->at[i].bytes;
        else
            u->at[++kept] = u->at[i];
    u->n = kept + 1;
}

static void make_room(struct log_usage *u)
{
    if (u->n < u->room)
        return;
    log_usage_sort(u);
    if (u->n <= u->room / 2 && u->room > 0)
        return;
    u->room = u->room ? u->room * 2 : FIRST_ROOM;
    u->at = mem_resize(u->at, u->room * sizeof u->at[0]);
}

void log_usage_add(struct log_usage *u, int64_t ledger, uint64_t bytes)
{
    if (u->n > 0 && u->at[u->n - 1].ledger == ledger) {
        u->at[u->n - 1].bytes += bytes;
        return;
    }
    make_room(u);
    u->at[u->n++] = (struct ledger_usage){ledger, bytes};
}

void log_usage_take(struct log_usage *u, int64_t ledger, uint64_t bytes)
{
    for (size_t i = u->n; i-- > 0 && bytes > 0;) {
        struct ledger_usage *l = &u->at[i];
        if (l->ledger != ledger)
            continue;
        const uint64_t part = l->bytes < bytes ? l->bytes : bytes;
        l->bytes -= part;
        bytes -= part;
    }
}

uint64_t log_usage_bytes(const struct log_usage *u)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < u->n; i++)
        bytes += u->at[i].bytes;
    return bytes;
}

void log_usage_clear(struct log_usage *u)
{
    u->n = 0;
}

void log_usage_end(struct log_usage *u)
{
    mem_free(u->at);
    *u = (struct log_usage){0};
}
