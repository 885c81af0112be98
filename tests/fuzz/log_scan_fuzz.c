/* log_scan_fuzz.c - an entry log with anything in it, its seal included.
 *
 * An input is the file itself, or (its first byte is odd) a script that writes one: records with
 * right checksums, zeros to a block, seals, any bytes, bytes that rot, what the device cannot read.
 * Without a checksum that is right a fuzzer would see little of what lies behind it.
 *
 * What is checked: each record is one, nothing is told twice, and what a script wrote whole is
 * found.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bookie/bytes.h"
#include "bookie/entry_log.h"
#include "bookie/log_scan.h"
#include "bookie/log_seal.h"
#include "common/crc32c.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum { LOG = 1, ROOM = 1 << 20, PAGE = 4096, RECORDS_MAX = 4096 };

/* ---- a disk with one file -------------------------------------------------------------------- */

struct memory_file {
    struct disk_file file;
    uint8_t *bytes;
    size_t len;
    uint64_t bad_from, bad_to; /* cannot be read */
};

static struct memory_file log_file;
static uint8_t room[ROOM];

static enum err open_file(struct disk *d, const char *path, unsigned how, struct disk_file **out)
{
    (void)path;
    (void)how;
    log_file.file.disk = d;
    *out = &log_file.file;
    return ERR_OK;
}

static enum err read_file(struct disk_file *f, uint64_t at, void *into, size_t len, size_t *got)
{
    (void)f;
    *got = at >= log_file.len ? 0 : log_file.len - at < len ? log_file.len - at : len;
    if (at < log_file.bad_to && at + *got > log_file.bad_from)
        return ERR_IO;
    if (*got > 0)
        memcpy(into, log_file.bytes + at, *got);
    return ERR_OK;
}

static enum err size_of(struct disk_file *f, uint64_t *out)
{
    (void)f;
    *out = log_file.len;
    return ERR_OK;
}

static void close_file(struct disk_file **f)
{
    *f = NULL;
}

static const struct disk_ops ops = {
    .open = open_file, .read = read_file, .size = size_of, .close = close_file};
static struct disk memory_disk = {.ops = &ops};

/* ---- what is in it --------------------------------------------------------------------------- */

static struct log_usage written;
static uint64_t record_at[RECORDS_MAX];
static unsigned n_records;
static size_t seal_at; /* 0: none was written */
static bool is_clean;  /* nothing but whole records and padding was written, and at most one seal */

static void put(const void *bytes, size_t len)
{
    if (len > ROOM - log_file.len)
        len = ROOM - log_file.len;
    if (len > 0)
        memcpy(log_file.bytes + log_file.len, bytes, len);
    log_file.len += len;
}

static void put_record(uint8_t ledger, uint8_t entry, const uint8_t *payload, size_t len)
{
    uint8_t record[ENTRY_LOG_RECORD + 16 + 256] = {0};
    const size_t size = ENTRY_LOG_RECORD + 16 + len;
    if (n_records == RECORDS_MAX || size > ROOM - log_file.len)
        return;
    put_u32(record + 4, (uint32_t)(16 + len));
    put_u64(record + ENTRY_LOG_RECORD, ledger);
    put_u64(record + ENTRY_LOG_RECORD + 8, entry);
    memcpy(record + ENTRY_LOG_RECORD + 16, payload, len);
    put_u32(record, crc32c(record + 4, size - 4));
    record_at[n_records++] = log_file.len;
    log_usage_add(&written, ledger, size);
    put(record, size);
}

static void put_zeros(void)
{
    static const uint8_t zeros[PAGE];
    put(zeros, (PAGE - log_file.len % PAGE) % PAGE);
}

static void put_seal(void)
{
    struct log_seal s = {.log = LOG, .offset = log_file.len, .usage = written};
    struct slice bytes = log_seal_write(&s);
    written = s.usage;
    seal_at = log_file.len;
    put(bytes.base, bytes.len);
    slice_drop(&bytes);
}

/* A byte of what was written: of the head of the last seal, or of the last pages. */
static void rot(uint8_t what, uint8_t where)
{
    const size_t back = (size_t)16 * where + what % 16 + 1;
    is_clean = false;
    if (seal_at > 0 && seal_at + where < log_file.len)
        log_file.bytes[seal_at + where] ^= what;
    else if (back <= log_file.len)
        log_file.bytes[log_file.len - back] ^= what;
}

/* One step; what it used of the script. */
static size_t step(const uint8_t *s, size_t len, bool *sealed)
{
    const size_t n = s[1] < len - 2 ? s[1] : len - 2;
    is_clean &= !*sealed;
    switch (s[0] % 6) {
    case 0:
        put_record(s[1] % 7, s[0], s + 2, n);
        return 2 + n;
    case 1:
        put_zeros();
        return 1;
    case 2:
        *sealed = true;
        put_seal();
        return 1;
    case 3:
        is_clean = false;
        log_file.bad_from = log_file.len;
        log_file.bad_to = log_file.len + s[1];
        return 2;
    case 4:
        rot(s[0], s[1]);
        return 2;
    default:
        is_clean = false;
        put(s + 2, n);
        return 2 + n;
    }
}

static void write_script(const uint8_t *s, size_t len)
{
    uint8_t header[ENTRY_LOG_HEADER];
    bool sealed = false;
    entry_log_header(header, LOG);
    put(header, sizeof header);
    is_clean = true;
    while (len >= 2) {
        const size_t used = step(s, len, &sealed);
        s += used;
        len -= used;
    }
}

/* ---- what is found --------------------------------------------------------------------------- */

struct found {
    uint64_t records, damaged, at;
};

static enum err take_record(void *ctx, const struct log_record *r)
{
    struct found *f = ctx;
    assert(r->offset >= f->at && r->offset >= ENTRY_LOG_HEADER);
    assert(r->offset + ENTRY_LOG_RECORD + r->bytes.len <= log_file.len);
    assert(r->ledger >= 0 && r->entry >= 0 && r->bytes.len >= 16);
    if (is_clean)
        assert(f->records < n_records && record_at[f->records] == r->offset);
    f->at = r->offset + ENTRY_LOG_RECORD + r->bytes.len;
    f->records++;
    return ERR_OK;
}

static void take_damage(void *ctx, uint64_t from, uint64_t to)
{
    struct found *f = ctx;
    assert(from >= f->at && from < to && to <= log_file.len);
    f->damaged += to - from;
    f->at = to;
}

static void check_seal(const struct log_usage *u)
{
    for (size_t i = 1; i < u->n; i++)
        assert(u->at[i - 1].ledger != u->at[i].ledger);
    if (is_clean)
        assert(log_usage_bytes(u) == log_usage_bytes(&written));
}

static void scan(void)
{
    struct found f = {0};
    struct log_scan s = {.disk = &memory_disk,
                         .dir = "d",
                         .log = LOG,
                         .record = take_record,
                         .damage = take_damage,
                         .ctx = &f};
    const enum err err = log_scan(&s);
    assert(err == ERR_OK || err == ERR_UNSUPPORTED_VERSION);
    assert(s.records == f.records && s.damaged_bytes == f.damaged && s.size == log_file.len);
    assert(s.record_bytes + s.damaged_bytes <= s.size);
    if (is_clean)
        assert(err == ERR_OK && f.records == n_records && f.damaged == 0);
    if (s.has_seal)
        check_seal(&s.seal);
    log_usage_end(&s.seal);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (len == 0)
        return 0;
    log_file = (struct memory_file){.bytes = room};
    n_records = 0;
    seal_at = 0;
    is_clean = false;
    if (bytes[0] & 1)
        write_script(bytes + 1, len - 1);
    else
        put(bytes + 1, len - 1);
    scan();
    log_usage_end(&written);
    return 0;
}
