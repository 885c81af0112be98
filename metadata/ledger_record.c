#include <string.h>

#include "common/mem.h"
#include "metadata/record_check.h"
#include "metadata/records.h"
#include "metadata/text_proto.h"
#include "proto/wire.h"

static const char front[] = "BookieMetadataFormatVersion\t";
enum { VARINT_MAX = 5 };

/* ---- version 2: text ------------------------------------------------------------------------ */

/* What is built here ends by the generated free_unpacked(): it comes from the allocator that
 * this one uses, field by field. */
static enum err text_int32(const struct text_field *f, int32_t *out)
{
    int64_t n;

    TRY(text_i64(f, &n));
    if (n < INT32_MIN || n > INT32_MAX)
        return ERR_MALFORMED;
    *out = (int32_t)n;
    return ERR_OK;
}

static enum err text_enum(const struct text_field *f, const ProtobufCEnumDescriptor *type, int *out)
{
    char name[32];

    if (f->kind != TEXT_WORD || f->word.len >= sizeof name)
        return ERR_MALFORMED;
    memcpy(name, f->word.base, f->word.len);
    name[f->word.len] = '\0';
    const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value_by_name(type, name);
    if (!v)
        return ERR_MALFORMED;
    *out = v->value;
    return ERR_OK;
}

static void bytes_of(struct text_field *f, ProtobufCBinaryData *out)
{
    mem_free(out->data);
    *out = (ProtobufCBinaryData){.data = (uint8_t *)f->bytes, .len = f->len};
    f->bytes = NULL;
}

static enum err segment_field(struct text_reader *r, struct text_field *f,
                              Bookkeeper__LedgerMetadataFormat__Segment *s)
{
    if (text_is(f, "firstEntryId"))
        return text_i64(f, &s->firstentryid);
    if (text_is(f, "ensembleMember")) {
        s->ensemblemember =
            mem_resize(s->ensemblemember, (s->n_ensemblemember + 1) * sizeof *s->ensemblemember);
        s->ensemblemember[s->n_ensemblemember] = NULL;
        TRY(text_string(f, &s->ensemblemember[s->n_ensemblemember]));
        s->n_ensemblemember++;
        return ERR_OK;
    }
    return f->kind == TEXT_OPEN ? text_skip(r) : ERR_OK;
}

static enum err segment_read(struct text_reader *r, Bookkeeper__LedgerMetadataFormat *m)
{
    Bookkeeper__LedgerMetadataFormat__Segment *s =
        mem_new(Bookkeeper__LedgerMetadataFormat__Segment);
    struct text_field f;
    enum err e;

    bookkeeper__ledger_metadata_format__segment__init(s);
    m->segment = mem_resize(m->segment, (m->n_segment + 1) * sizeof *m->segment);
    m->segment[m->n_segment++] = s;
    while (!(e = text_next(r, &f))) {
        e = segment_field(r, &f, s);
        text_field_drop(&f);
        TRY(e);
    }
    return e == ERR_END ? ERR_OK : e;
}

static enum err custom_read(struct text_reader *r, Bookkeeper__LedgerMetadataFormat *m)
{
    Bookkeeper__LedgerMetadataFormat__CustomMetadata *c =
        mem_new(Bookkeeper__LedgerMetadataFormat__CustomMetadata);
    struct text_field f;
    enum err e;

    bookkeeper__ledger_metadata_format__custom_metadata__init(c);
    m->custommetadata =
        mem_resize(m->custommetadata, (m->n_custommetadata + 1) * sizeof *m->custommetadata);
    m->custommetadata[m->n_custommetadata++] = c;
    while (!(e = text_next(r, &f))) {
        if (text_is(&f, "key"))
            e = text_string(&f, &c->key);
        else if (text_is(&f, "value") && f.kind == TEXT_BYTES) {
            c->has_value = true;
            bytes_of(&f, &c->value);
        } else if (f.kind == TEXT_OPEN)
            e = text_skip(r);
        text_field_drop(&f);
        TRY(e);
    }
    return e == ERR_END ? ERR_OK : e;
}

enum { HAS_QUORUM = 1, HAS_ENSEMBLE = 2, HAS_LENGTH = 4, HAS_STATE = 8, HAS_ALL = 15 };

static enum err number_field(struct text_field *f, Bookkeeper__LedgerMetadataFormat *m,
                             unsigned *has)
{
    if (text_is(f, "quorumSize")) {
        *has |= HAS_QUORUM;
        return text_int32(f, &m->quorumsize);
    }
    if (text_is(f, "ensembleSize")) {
        *has |= HAS_ENSEMBLE;
        return text_int32(f, &m->ensemblesize);
    }
    if (text_is(f, "length")) {
        *has |= HAS_LENGTH;
        return text_i64(f, &m->length);
    }
    if (text_is(f, "lastEntryId")) {
        m->has_lastentryid = true;
        return text_i64(f, &m->lastentryid);
    }
    if (text_is(f, "ackQuorumSize")) {
        m->has_ackquorumsize = true;
        return text_int32(f, &m->ackquorumsize);
    }
    if (text_is(f, "ctime")) {
        m->has_ctime = true;
        return text_i64(f, &m->ctime);
    }
    if (text_is(f, "cToken")) {
        m->has_ctoken = true;
        return text_i64(f, &m->ctoken);
    }
    return ERR_NOT_FOUND;
}

static enum err other_field(struct text_reader *r, struct text_field *f,
                            Bookkeeper__LedgerMetadataFormat *m, unsigned *has)
{
    int value = 0;

    if (text_is(f, "state")) {
        *has |= HAS_STATE;
        TRY(text_enum(f, &bookkeeper__ledger_metadata_format__state__descriptor, &value));
        m->state = (Bookkeeper__LedgerMetadataFormat__State)value;
        return ERR_OK;
    }
    if (text_is(f, "digestType")) {
        m->has_digesttype = true;
        TRY(text_enum(f, &bookkeeper__ledger_metadata_format__digest_type__descriptor, &value));
        m->digesttype = (Bookkeeper__LedgerMetadataFormat__DigestType)value;
        return ERR_OK;
    }
    if (text_is(f, "password") && f->kind == TEXT_BYTES) {
        m->has_password = true;
        bytes_of(f, &m->password);
        return ERR_OK;
    }
    if (f->kind != TEXT_OPEN)
        return ERR_OK;
    if (text_is(f, "segment"))
        return segment_read(r, m);
    return text_is(f, "customMetadata") ? custom_read(r, m) : text_skip(r);
}

static enum err text_fields(struct text_reader *r, Bookkeeper__LedgerMetadataFormat *m)
{
    struct text_field f;
    unsigned has = 0;
    enum err e;

    while (!(e = text_next(r, &f))) {
        e = number_field(&f, m, &has);
        if (e == ERR_NOT_FOUND)
            e = other_field(r, &f, m, &has);
        text_field_drop(&f);
        TRY(e);
    }
    if (e == ERR_END)
        return has == HAS_ALL ? ERR_OK : ERR_MALFORMED;
    return e;
}

static enum err read_text(struct reader *in, Bookkeeper__LedgerMetadataFormat **out)
{
    struct text_reader r = text_reader_of(view_of(in->at, reader_left(in)));

    *out = mem_new(Bookkeeper__LedgerMetadataFormat);
    bookkeeper__ledger_metadata_format__init(*out);
    return text_fields(&r, *out);
}

/* ---- version 3: bytes ----------------------------------------------------------------------- */

static enum err read_bytes(struct reader *in, Bookkeeper__LedgerMetadataFormat **out)
{
    struct view body;
    uint64_t len;

    TRY(read_varint(in, &len));
    if (len > reader_left(in))
        return ERR_MALFORMED;
    TRY(read_view(in, (size_t)len, &body));
    *out = bookkeeper__ledger_metadata_format__unpack(NULL, body.len, body.base);
    return *out ? ERR_OK : ERR_MALFORMED;
}

/* ---- both ----------------------------------------------------------------------------------- */

/* What every reader relies on to find an entry's bookies without leaving an array. */
static bool is_sound(const Bookkeeper__LedgerMetadataFormat *m)
{
    int64_t before = -1;

    if (m->quorumsize < 1 || m->ensemblesize < m->quorumsize || m->n_segment == 0)
        return false;
    if (m->has_ackquorumsize && (m->ackquorumsize < 0 || m->ackquorumsize > m->quorumsize))
        return false;
    for (size_t i = 0; i < m->n_segment; i++) {
        const Bookkeeper__LedgerMetadataFormat__Segment *s = m->segment[i];
        if (s->n_ensemblemember != (size_t)m->ensemblesize || s->firstentryid <= before)
            return false;
        before = s->firstentryid;
    }
    return m->segment[0]->firstentryid == 0;
}

static enum err read_front(struct reader *r, uint8_t *version)
{
    struct view text;
    uint8_t newline;

    TRY(read_view(r, strlen(front), &text));
    if (memcmp(text.base, front, strlen(front)) != 0)
        return ERR_UNSUPPORTED_VERSION;
    TRY(read_u8(r, version));
    TRY(read_u8(r, &newline));
    return newline == '\n' ? ERR_OK : ERR_UNSUPPORTED_VERSION;
}

enum err ledger_record_read(struct view value, Bookkeeper__LedgerMetadataFormat **out)
{
    struct reader r = reader_of(value);
    Bookkeeper__LedgerMetadataFormat *m = NULL;
    uint8_t version;
    enum err e;

    TRY(read_front(&r, &version));
    if (version != '2' && version != '3')
        return ERR_UNSUPPORTED_VERSION;
    e = version == '2' ? read_text(&r, &m) : read_bytes(&r, &m);
    if (!e && (!is_sound(m) || !record_survives(&m->base)))
        e = ERR_MALFORMED;
    if (e) {
        bookkeeper__ledger_metadata_format__free_unpacked(m, NULL);
        return e;
    }
    *out = m;
    return ERR_OK;
}

struct slice ledger_record_write(const Bookkeeper__LedgerMetadataFormat *m)
{
    size_t body = bookkeeper__ledger_metadata_format__get_packed_size(m);
    struct slab *slab = slab_new(strlen(front) + 2 + VARINT_MAX + body);
    struct writer w = {.base = slab_bytes(slab), .room = slab_size(slab)};

    write_bytes(&w, front, strlen(front));
    write_bytes(&w, "3\n", 2);
    write_varint(&w, body);
    w.len += bookkeeper__ledger_metadata_format__pack(m, w.base + w.len);
    return slice_take(&slab, w.len);
}
