#include "tests/crashpoints/book.h"

#include <err.h>
#include <stdio.h>
#include <string.h>

#include "common/rng.h"
#include "proto/entry.h"

void book_init(struct book *b)
{
    memset(b, 0, sizeof *b);
    for (unsigned i = 0; i < BOOK_LEDGERS; i++) {
        struct book_ledger *l = &b->ledgers[i];
        l->lac_asked = l->lac = l->last_asked = l->last = -1;
    }
}

struct book_ledger *book_ledger(struct book *b, int64_t ledger)
{
    if (ledger < BOOK_FIRST || ledger >= BOOK_FIRST + BOOK_LEDGERS)
        errx(1, "ledger %ld is in no book", ledger);
    return &b->ledgers[ledger - BOOK_FIRST];
}

static struct book_entry *entry_of(struct book_ledger *l, int64_t entry)
{
    if (entry < 0 || entry >= BOOK_ENTRIES)
        errx(1, "entry %ld is in no book", entry);
    return &l->at[entry];
}

void book_asked(struct book *b, const struct book_act *a)
{
    struct book_ledger *l = book_ledger(b, a->ledger);
    if (a->kind != BOOK_DELETE && a->kind != BOOK_FORCE)
        l->is_known = true;
    switch (a->kind) {
    case BOOK_ADD:
        entry_of(l, a->entry)->asked = (uint8_t)(a->version + 1);
        if (a->entry > l->last_asked)
            l->last_asked = a->entry;
        break;
    case BOOK_FENCE:
        l->fence_asked = true;
        break;
    case BOOK_LAC:
        if (a->entry > l->lac_asked)
            l->lac_asked = a->entry;
        break;
    case BOOK_DELETE:
        l->deleted = true;
        break;
    default:
        break;
    }
}

static void acknowledge(struct book_ledger *l, int64_t entry, unsigned least)
{
    struct book_entry *e = entry_of(l, entry);
    if (e->least < least)
        e->least = (uint8_t)least;
    if (entry > l->last)
        l->last = entry;
    l->must_know = true;
}

static void force(struct book_ledger *l)
{
    for (int64_t e = 0; e <= l->last_asked; e++) {
        if (l->at[e].deferred)
            acknowledge(l, e, l->at[e].deferred);
        l->at[e].deferred = 0;
    }
}

void book_answered(struct book *b, const struct book_act *a)
{
    struct book_ledger *l = book_ledger(b, a->ledger);
    switch (a->kind) {
    case BOOK_ADD:
        if (a->is_deferred)
            entry_of(l, a->entry)->deferred = (uint8_t)(a->version + 1);
        else
            acknowledge(l, a->entry, a->version + 1u);
        break;
    case BOOK_FENCE:
        l->fenced = l->must_know = true;
        break;
    case BOOK_LAC:
        if (a->entry > l->lac)
            l->lac = a->entry;
        l->must_know = true;
        break;
    case BOOK_FORCE:
        force(l);
        break;
    default:
        break;
    }
}

void book_note(struct book *b, uint64_t kind, const void *bytes, size_t len)
{
    struct book_act a;
    if (kind == NOTE_COOKIE)
        b->is_registered = true;
    if (kind == NOTE_SERVING)
        b->lives++;
    if (kind != NOTE_ASKED && kind != NOTE_ANSWERED)
        return;
    if (len != sizeof a)
        errx(1, "a note of %zu bytes", len);
    memcpy(&a, bytes, sizeof a);
    if (kind == NOTE_ASKED)
        book_asked(b, &a);
    else
        book_answered(b, &a);
}

/* ---- bytes ---------------------------------------------------------------------------------- */

static size_t payload_of(int64_t ledger, int64_t entry, unsigned version)
{
    uint64_t seed = (uint64_t)ledger << 32 ^ (uint64_t)entry << 8 ^ version;
    const uint64_t r = rng_next(&seed);
    if (r % 64 == 0)
        return 30000 + r / 64 % 10000;
    return r % 3 == 0 ? r / 64 % 200 : r / 64 % 10000;
}

static void fill(uint8_t *at, size_t len, uint64_t seed)
{
    for (size_t i = 0; i < len; i += 8) {
        const uint64_t r = rng_next(&seed);
        memcpy(at + i, &r, len - i < 8 ? len - i : 8);
    }
}

size_t book_entry_bytes(int64_t ledger, int64_t entry, unsigned version, uint8_t *into)
{
    const size_t payload = payload_of(ledger, entry, version);
    const struct digest d = digest_of(DIGEST_CRC32C, view_of("", 0));
    const struct entry_header h = {ledger, entry, entry - 1, (entry + 1) * 5000};
    uint8_t prefix[ENTRY_HEADER + DIGEST_SIZE_MAX];
    size_t n;
    fill(into + ENTRY_PREFIX, payload, (uint64_t)ledger << 40 ^ (uint64_t)entry << 8 ^ version);
    entry_prefix_with(&d, &h, view_of(into + ENTRY_PREFIX, payload), prefix, &n);
    memcpy(into, prefix, n);
    return n + payload;
}

int book_version_of(const struct book *b, int64_t ledger, int64_t entry, const uint8_t *bytes,
                    size_t len)
{
    static uint8_t right[BOOK_ENTRY_MAX];
    const struct book_entry *e = &b->ledgers[ledger - BOOK_FIRST].at[entry];
    for (unsigned v = 0; v < e->asked; v++)
        if (book_entry_bytes(ledger, entry, v, right) == len && memcmp(right, bytes, len) == 0)
            return (int)v;
    return -1;
}

void book_key(int64_t ledger, uint8_t key[20])
{
    char password[32];
    const int n = snprintf(password, sizeof password, "of %ld", ledger);
    master_key_of(view_of(password, (size_t)n), key);
}
