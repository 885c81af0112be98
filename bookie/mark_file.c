#include "bookie/mark_file.h"

#include "bookie/bytes.h"
#include "bookie/journal_format.h"
#include "common/crc32c.h"
#include "common/log.h"
#include "common/mem.h"

enum { MAGIC = 0x4c474d4d /* "LGMM" */, VERSION = 1, OLDEST_READER = 1, SIZE = 36 };

static enum err read_mark(const uint8_t *bytes, size_t len, struct journal_mark *out)
{
    if (len < SIZE || get_u32(bytes) != MAGIC)
        return ERR_CHECKSUM;
    if (get_u32(bytes + SIZE - 4) != crc32c(bytes, SIZE - 4))
        return ERR_CHECKSUM;
    if ((get_u32(bytes + 4) & 0xffff) > VERSION)
        return ERR_UNSUPPORTED_VERSION;
    *out = (struct journal_mark){get_u64(bytes + 8), get_u64(bytes + 16), get_u64(bytes + 24)};
    return ERR_OK;
}

enum err mark_load(struct disk *d, const char *path, struct journal_mark *out)
{
    char *bytes;
    size_t len;
    *out = (struct journal_mark){0, JOURNAL_BLOCK, 1};
    enum err err = disk_load(d, path, JOURNAL_BLOCK, &bytes, &len);
    if (err == ERR_NOT_FOUND)
        return ERR_OK;
    TRY(err);
    err = read_mark((const uint8_t *)bytes, len, out);
    mem_free(bytes);
    if (err)
        log_event(LOG_ERROR, "mark.unreadable", F_STR("path", path), F_ERR(err));
    return err;
}

enum err mark_store(struct disk *d, const char *path, const struct journal_mark *m)
{
    uint8_t bytes[SIZE];
    put_u32(bytes, MAGIC);
    put_u32(bytes + 4, VERSION << 16 | OLDEST_READER);
    put_u64(bytes + 8, m->file);
    put_u64(bytes + 16, m->offset);
    put_u64(bytes + 24, m->sequence);
    put_u32(bytes + SIZE - 4, crc32c(bytes, SIZE - 4));
    return disk_store(d, path, bytes, sizeof bytes);
}

bool mark_is_before(const struct journal_mark *a, const struct journal_mark *b)
{
    if (a->file != b->file)
        return a->file < b->file;
    return a->offset < b->offset;
}
