#include "ledger/layout.h"

#include <string.h>

#include "common/loop.h"
#include "common/mem.h"

/* Short words for what protoc-c calls at length. */
typedef Bookkeeper__LedgerMetadataFormat record;
typedef Bookkeeper__LedgerMetadataFormat__Segment segment;
typedef Bookkeeper__LedgerMetadataFormat__CustomMetadata custom;

static enum err read_quorum(const record *r, struct quorum *out)
{
    if (r->ensemblesize < 1 || r->quorumsize < 1 || (r->has_ackquorumsize && r->ackquorumsize < 1))
        return ERR_MALFORMED;
    out->ensemble = (unsigned)r->ensemblesize;
    out->write = (unsigned)r->quorumsize;
    out->ack = (unsigned)(r->has_ackquorumsize ? r->ackquorumsize : r->quorumsize);
    return quorum_valid(*out) ? ERR_OK : ERR_MALFORMED;
}

static enum err read_fragment(const segment *s, struct quorum q, struct bookies *bookies,
                              struct fragment *out)
{
    if (s->n_ensemblemember != q.ensemble)
        return ERR_MALFORMED;
    *out = (struct fragment){.first = s->firstentryid};
    for (unsigned i = 0; i < q.ensemble; i++)
        out->bookie[i] = bookies_number(bookies, s->ensemblemember[i]);
    return ERR_OK;
}

static enum err read_fragments(const record *r, struct quorum q, struct bookies *bookies,
                               struct fragment *out)
{
    for (size_t i = 0; i < r->n_segment; i++) {
        TRY(read_fragment(r->segment[i], q, bookies, &out[i]));
        bool in_order = i == 0 ? out[i].first == 0 : out[i].first > out[i - 1].first;
        if (!in_order)
            return ERR_MALFORMED;
    }
    return ERR_OK;
}

static void read_seal(const record *r, struct layout *l)
{
    struct view password = view_of(r->password.data, r->has_password ? r->password.len : 0);

    l->digest =
        digest_of(r->has_digesttype ? (enum digest_type)r->digesttype : DIGEST_CRC32, password);
    master_key_of(password, l->key);
}

static void read_end(const record *r, struct ledger_facts *f)
{
    f->state = (enum ledger_state)r->state;
    f->last = r->has_lastentryid ? r->lastentryid : ENTRY_NONE;
    f->length = r->length;
}

/* What is no policy of ours binds nobody. */
static void read_groups(const record *r, struct layout *l)
{
    for (size_t i = 0; i < r->n_custommetadata; i++) {
        const custom *c = r->custommetadata[i];
        if (c->key && strcmp(c->key, PLACEMENT_TAG) == 0 && c->has_value && !l->grouped)
            l->grouped = !placement_record_read(view_of(c->value.data, c->value.len), &l->groups);
    }
}

static enum err read_record(const record *r, struct bookies *bookies, struct layout *l)
{
    TRY(read_quorum(r, &l->facts.quorum));
    if (r->n_segment == 0 || r->n_segment > UINT32_MAX)
        return ERR_MALFORMED;
    l->n = (unsigned)r->n_segment;
    l->fragments = mem_alloc(l->n * sizeof *l->fragments);
    TRY(read_fragments(r, l->facts.quorum, bookies, l->fragments));
    l->facts.tail = l->fragments[l->n - 1];
    read_end(r, &l->facts);
    read_seal(r, l);
    read_groups(r, l);
    return ERR_OK;
}

enum err layout_read(struct layout *l, struct bookies *bookies, struct view value, int64_t version)
{
    struct layout next = {.version = version, .newest = version};

    TRY(ledger_record_read(value, &next.record));
    enum err err = read_record(next.record, bookies, &next);
    if (err) {
        layout_drop(&next);
        return err;
    }
    layout_drop(l);
    *l = next;
    return ERR_OK;
}

void layout_drop(struct layout *l)
{
    if (l->record)
        bookkeeper__ledger_metadata_format__free_unpacked(l->record, NULL);
    mem_free(l->fragments);
    placement_record_drop(&l->groups);
    *l = (struct layout){0};
}

static bool is_one_ledger(const record *a, const record *b)
{
    if (a->has_ctoken != b->has_ctoken)
        return false;
    return a->has_ctoken ? a->ctoken == b->ctoken : a->ctime == b->ctime;
}

/* A ledger never opens again, and a version never goes back. */
bool layout_is_behind(const struct layout *stored, const struct layout *known)
{
    if (!is_one_ledger(stored->record, known->record))
        return false;
    if (known->facts.state == LEDGER_CLOSED)
        return stored->facts.state != LEDGER_CLOSED;
    return known->facts.state == LEDGER_OPEN && stored->facts.state == LEDGER_OPEN &&
           stored->version < known->newest;
}

enum err layout_learn(struct layout *l, struct bookies *bookies, struct view value, int64_t version)
{
    struct layout stored = {0};

    TRY(layout_read(&stored, bookies, value, version));
    if (l->record && layout_is_behind(&stored, l)) {
        l->version = version;
        layout_drop(&stored);
        return ERR_OK;
    }
    layout_drop(l);
    *l = stored;
    return ERR_OK;
}

struct slice layout_value(const struct layout *l)
{
    return ledger_record_write(l->record);
}

struct bookies_wish layout_wish(const struct layout *l)
{
    return (struct bookies_wish){.quorum = l->facts.quorum,
                                 .groups = l->grouped ? &l->groups : NULL};
}

const struct fragment *layout_find(const struct layout *l, entry_id e)
{
    unsigned i = l->n;

    while (i > 1 && l->fragments[i - 1].first > e)
        i--;
    return &l->fragments[i - 1];
}

/* ---- writing: the record points into memory of ours just for the packing ---- */

struct page {
    segment segment;
    char *members[ENSEMBLE_MAX];
};

static void fill_page(struct page *p, struct bookies *bookies, struct quorum q,
                      const struct fragment *f)
{
    bookkeeper__ledger_metadata_format__segment__init(&p->segment);
    p->segment.firstentryid = f->first;
    p->segment.n_ensemblemember = q.ensemble;
    p->segment.ensemblemember = p->members;
    for (unsigned i = 0; i < q.ensemble; i++)
        p->members[i] = (char *)(uintptr_t)bookies_id(bookies, f->bookie[i]);
}

static void describe(record *r, struct quorum q, int64_t token)
{
    bookkeeper__ledger_metadata_format__init(r);
    r->ensemblesize = (int32_t)q.ensemble;
    r->quorumsize = (int32_t)q.write;
    r->ackquorumsize = (int32_t)q.ack;
    r->has_ackquorumsize = 1;
    r->state = BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__OPEN;
    r->digesttype = BOOKKEEPER__LEDGER_METADATA_FORMAT__DIGEST_TYPE__CRC32C;
    r->has_digesttype = 1;
    r->has_password = 1; /* empty */
    r->ctime = (int64_t)loop_wall_ms();
    r->has_ctime = 1;
    r->ctoken = token;
    r->has_ctoken = 1;
}

struct slice layout_first(struct bookies *bookies, struct quorum q, const uint32_t *members,
                          int64_t token, const struct ledger_tag *tags, unsigned n)
{
    struct fragment f = {.first = 0};
    struct page page;
    segment *only = &page.segment;
    custom *pairs = mem_alloc((n + 1) * sizeof *pairs);
    custom **pointers = mem_alloc((n + 1) * sizeof(custom *));
    record r;

    memcpy(f.bookie, members, q.ensemble * sizeof *members);
    fill_page(&page, bookies, q, &f);
    describe(&r, q, token);
    r.n_segment = 1;
    r.segment = &only;
    for (unsigned i = 0; i < n; i++) {
        bookkeeper__ledger_metadata_format__custom_metadata__init(&pairs[i]);
        pairs[i].key = (char *)(uintptr_t)tags[i].key;
        pairs[i].has_value = 1;
        pairs[i].value.data = (uint8_t *)(uintptr_t)tags[i].value.base;
        pairs[i].value.len = tags[i].value.len;
        pointers[i] = &pairs[i];
    }
    r.n_custommetadata = n;
    r.custommetadata = pointers;
    struct slice value = ledger_record_write(&r);
    mem_free((void *)pointers);
    mem_free(pairs);
    return value;
}

bool layout_has_token(const struct layout *l, int64_t token)
{
    return l->record->has_ctoken && l->record->ctoken == token;
}

struct slice layout_marked(const struct layout *l)
{
    record r = *l->record;

    r.state = BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__IN_RECOVERY;
    return ledger_record_write(&r);
}

/* The fragments that stay come first; a changed one with the first entry of the last one takes
 * its place. */
static size_t keep(const struct layout *l, const struct fragment *changed, unsigned n,
                   segment **into)
{
    size_t count = 0;

    for (size_t i = 0; i < l->record->n_segment; i++)
        if (n == 0 || l->record->segment[i]->firstentryid < changed[0].first)
            into[count++] = l->record->segment[i];
    return count;
}

static struct slice write_with(const struct layout *l, struct bookies *bookies, record *r,
                               const struct fragment *changed, unsigned n)
{
    struct page *pages = mem_alloc((n + 1) * sizeof *pages);

    r->segment = mem_alloc((l->record->n_segment + n) * sizeof(segment *));
    r->n_segment = keep(l, changed, n, r->segment);
    for (unsigned i = 0; i < n; i++) {
        fill_page(&pages[i], bookies, l->facts.quorum, &changed[i]);
        r->segment[r->n_segment++] = &pages[i].segment;
    }
    struct slice value = ledger_record_write(r);
    mem_free((void *)r->segment);
    mem_free(pages);
    return value;
}

struct slice layout_changed(const struct layout *l, struct bookies *bookies,
                            const struct fragment *next)
{
    record r = *l->record;

    return write_with(l, bookies, &r, next, 1);
}

struct slice layout_moved(const struct layout *l, struct bookies *bookies, unsigned fragment,
                          unsigned slot, uint32_t to)
{
    struct fragment f = l->fragments[fragment];
    struct page page;
    record r = *l->record;

    f.bookie[slot] = to;
    fill_page(&page, bookies, l->facts.quorum, &f);
    r.segment = mem_alloc(r.n_segment * sizeof(segment *));
    memcpy((void *)r.segment, (void *)l->record->segment, r.n_segment * sizeof(segment *));
    r.segment[fragment] = &page.segment;
    struct slice value = ledger_record_write(&r);
    mem_free((void *)r.segment);
    return value;
}

struct slice layout_closed(const struct layout *l, struct bookies *bookies, entry_id last,
                           int64_t length, const struct fragment *changed, unsigned n)
{
    record r = *l->record;

    r.state = BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__CLOSED;
    r.lastentryid = last;
    r.has_lastentryid = 1;
    r.length = length;
    return write_with(l, bookies, &r, changed, n);
}
