#include "bookie/mark_file.h"

#include "bookie/bytes.h"
#include "bookie/journal_format.h"
#include "common/crc32c.h"
#include "common/log.h"
#include "common/mem.h"

enum {
    MAGIC = 0x4c474d4d /* "LGMM" */,
    VERSION = 2,
    OLDEST_READER = 2,
    SIZE = 44,
    SIZE_1 = 36 /* of version 1 */
};

static enum err read_mark(const uint8_t *bytes, size_t len, struct journal_mark *out,
                          uint64_t *index)
{
    if (len < SIZE_1 || get_u32(bytes) != MAGIC)
        return ERR_CHECKSUM;
    const size_t size = get_u32(bytes + 4) >> 16 == 1 ? SIZE_1 : SIZE;
    if (len < size || get_u32(bytes + size - 4) != crc32c(bytes, size - 4))
        return ERR_CHECKSUM;
    if ((get_u32(bytes + 4) & 0xffff) > VERSION)
        return ERR_UNSUPPORTED_VERSION;
    *out = (struct journal_mark){get_u64(bytes + 8), get_u64(bytes + 16), get_u64(bytes + 24)};
    *index = size == SIZE ? get_u64(bytes + 32) : 0;
    return ERR_OK;
}

enum err mark_load(struct disk *d, const char *path, struct journal_mark *out, uint64_t *index)
{
    char *bytes;
    size_t len;
    *out = (struct journal_mark){0, JOURNAL_BLOCK, 1};
    *index = 0;
    enum err err = disk_load(d, path, JOURNAL_BLOCK, &bytes, &len);
    if (err == ERR_NOT_FOUND)
        return ERR_OK;
    TRY(err);
    err = read_mark((const uint8_t *)bytes, len, out, index);
    mem_free(bytes);
    if (err)
        log_event(LOG_ERROR, "mark.unreadable", F_STR("path", path), F_ERR(err));
    return err;
}

enum err mark_store(struct disk *d, const char *path, const struct journal_mark *m, uint64_t index)
{
    uint8_t bytes[SIZE];
    put_u32(bytes, MAGIC);
    put_u32(bytes + 4, VERSION << 16 | OLDEST_READER);
    put_u64(bytes + 8, m->file);
    put_u64(bytes + 16, m->offset);
    put_u64(bytes + 24, m->sequence);
    put_u64(bytes + 32, index);
    put_u32(bytes + SIZE - 4, crc32c(bytes, SIZE - 4));
    return disk_store(d, path, bytes, sizeof bytes);
}

bool mark_is_before(const struct journal_mark *a, const struct journal_mark *b)
{
    if (a->file != b->file)
        return a->file < b->file;
    return a->offset < b->offset;
}
