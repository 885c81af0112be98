#include "broker/managed_ledger/remembered.h"

#include <string.h>

#include "common/mem.h"

void remembered_init(struct remembered *r, size_t *total)
{
    *r = (struct remembered){.total = total};
}

static size_t cost(const struct remembered_ledger *l)
{
    return l->len + sizeof(*l);
}

static void take_out(struct remembered *r, unsigned i)
{
    *r->total -= cost(&r->at[i]);
    mem_free(r->at[i].value);
    r->n--;
    memmove(&r->at[i], &r->at[i + 1], (r->n - i) * sizeof(*r->at));
}

void remembered_drop(struct remembered *r)
{
    while (r->n > 0)
        take_out(r, r->n - 1);
    mem_free(r->at);
    *r = (struct remembered){.total = r->total};
}

/* The first one that is not below it. */
static unsigned place_of(const struct remembered *r, int64_t ledger)
{
    unsigned i = r->n;

    while (i > 0 && r->at[i - 1].ledger >= ledger)
        i--;
    return i;
}

const struct remembered_ledger *remembered_find(const struct remembered *r, int64_t ledger)
{
    unsigned i = place_of(r, ledger);

    return i < r->n && r->at[i].ledger == ledger ? &r->at[i] : NULL;
}

const struct remembered_ledger *remembered_after(const struct remembered *r, int64_t ledger)
{
    unsigned i = place_of(r, ledger + 1);

    return i < r->n ? &r->at[i] : NULL;
}

void remembered_forget(struct remembered *r, int64_t ledger)
{
    unsigned i = place_of(r, ledger);

    if (i < r->n && r->at[i].ledger == ledger)
        take_out(r, i);
}

void remembered_age(struct remembered *r, int64_t now_ms)
{
    while (r->n > 0 && (r->n > REMEMBERED_MAX || now_ms - r->at[0].closed_ms > REMEMBERED_MS ||
                        *r->total > REMEMBERED_BYTES))
        take_out(r, 0);
}

static void make_room(struct remembered *r, unsigned i)
{
    if (r->n == r->room) {
        r->room = r->room ? r->room * 2 : 2;
        r->at = mem_resize(r->at, r->room * sizeof(*r->at));
    }
    memmove(&r->at[i + 1], &r->at[i], (r->n - i) * sizeof(*r->at));
    r->n++;
}

void remembered_note(struct remembered *r, const struct ledger_known *k, int64_t closed_ms,
                     int64_t now_ms)
{
    unsigned i;

    remembered_forget(r, k->ledger);
    i = place_of(r, k->ledger);
    make_room(r, i);
    r->at[i] = (struct remembered_ledger){.ledger = k->ledger,
                                          .version = k->version,
                                          .closed_ms = closed_ms,
                                          .value = mem_alloc(k->value.len),
                                          .len = k->value.len};
    memcpy(r->at[i].value, k->value.base, k->value.len);
    *r->total += cost(&r->at[i]);
    remembered_age(r, now_ms);
}

struct ledger_known remembered_known(const struct remembered_ledger *l)
{
    return (struct ledger_known){
        .ledger = l->ledger, .version = l->version, .value = slice_copy(l->value, l->len)};
}
