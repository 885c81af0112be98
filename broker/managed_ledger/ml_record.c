#include "broker/managed_ledger/ml_record.h"

#include <string.h>

#include "common/mem.h"

enum err ml_record_segments(const ManagedLedger__ManagedLedgerInfo *r, struct segments *into)
{
    for (size_t i = 0; i < r->n_ledgerinfo; i++) {
        const ManagedLedger__ManagedLedgerInfo__LedgerInfo *one = r->ledgerinfo[i];
        const struct segment *last = segments_last(into);

        if (one->ledgerid < 0 || one->entries < 0 || (last && last->ledger >= one->ledgerid))
            return ERR_MALFORMED;
        segments_add(into, (struct segment){
                               .ledger = one->ledgerid,
                               .entries = one->has_timestamp ? one->entries : 0,
                               .bytes = one->has_timestamp ? one->size : 0,
                               .closed_ms = one->has_timestamp ? one->timestamp : 0,
                           });
    }
    return ERR_OK;
}

static void set_ledger(ManagedLedger__ManagedLedgerInfo__LedgerInfo *one, const struct segment *s)
{
    one->ledgerid = s->ledger;
    one->has_entries = one->has_size = one->has_timestamp = !s->open;
    one->entries = s->open ? 0 : s->entries;
    one->size = s->open ? 0 : s->bytes;
    one->timestamp = s->open ? 0 : s->closed_ms;
}

static ManagedLedger__ManagedLedgerInfo__LedgerInfo *new_ledger(void)
{
    ManagedLedger__ManagedLedgerInfo__LedgerInfo *one =
        mem_new(ManagedLedger__ManagedLedgerInfo__LedgerInfo);

    managed_ledger__managed_ledger_info__ledger_info__init(one);
    return one;
}

static void free_ledger(ManagedLedger__ManagedLedgerInfo__LedgerInfo *one)
{
    protobuf_c_message_free_unpacked(&one->base, NULL);
}

/* Both rows rise by id, so one walk finds what stays. */
void ml_record_set_segments(ManagedLedger__ManagedLedgerInfo *r, const struct segments *s)
{
    ManagedLedger__ManagedLedgerInfo__LedgerInfo **kept =
        s->n ? mem_alloc(s->n * sizeof(ManagedLedger__ManagedLedgerInfo__LedgerInfo *)) : NULL;
    size_t old = 0;

    for (unsigned i = 0; i < s->n; i++) {
        for (; old < r->n_ledgerinfo && r->ledgerinfo[old]->ledgerid < s->at[i].ledger; old++)
            free_ledger(r->ledgerinfo[old]);
        if (old < r->n_ledgerinfo && r->ledgerinfo[old]->ledgerid == s->at[i].ledger)
            kept[i] = r->ledgerinfo[old++];
        else
            kept[i] = new_ledger();
        set_ledger(kept[i], &s->at[i]);
    }
    for (; old < r->n_ledgerinfo; old++)
        free_ledger(r->ledgerinfo[old]);
    mem_free(r->ledgerinfo);
    r->ledgerinfo = kept;
    r->n_ledgerinfo = s->n;
}

static size_t place_of(const ManagedLedger__ManagedLedgerInfo *r, const char *key)
{
    size_t i = 0;

    while (i < r->n_properties && strcmp(r->properties[i]->key, key) != 0)
        i++;
    return i;
}

const char *ml_record_property(const ManagedLedger__ManagedLedgerInfo *r, const char *key)
{
    size_t i = place_of(r, key);

    return i < r->n_properties ? r->properties[i]->value : NULL;
}

static void remove_property(ManagedLedger__ManagedLedgerInfo *r, size_t i)
{
    managed_ledger__key_value__free_unpacked(r->properties[i], NULL);
    r->n_properties--;
    memmove(&r->properties[i], &r->properties[i + 1],
            (r->n_properties - i) * sizeof(ManagedLedger__KeyValue *));
}

static void add_property(ManagedLedger__ManagedLedgerInfo *r, const char *key, const char *value)
{
    ManagedLedger__KeyValue *one = mem_new(ManagedLedger__KeyValue);

    managed_ledger__key_value__init(one);
    one->key = mem_string(key);
    one->value = mem_string(value);
    r->properties =
        mem_resize(r->properties, (r->n_properties + 1) * sizeof(ManagedLedger__KeyValue *));
    r->properties[r->n_properties++] = one;
}

void ml_record_set_property(ManagedLedger__ManagedLedgerInfo *r, const char *key, const char *value)
{
    size_t i = place_of(r, key);

    if (i == r->n_properties) {
        if (value)
            add_property(r, key, value);
    } else if (!value) {
        remove_property(r, i);
    } else if (strcmp(r->properties[i]->value, value) != 0) {
        mem_free(r->properties[i]->value);
        r->properties[i]->value = mem_string(value);
    }
}
