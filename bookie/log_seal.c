#include "bookie/log_seal.h"

#include <string.h>

#include "bookie/bytes.h"
#include "bookie/entry_log.h"
#include "common/crc32c.h"
#include "common/mem.h"

enum {
    MAGIC = 0x4c474d53 /* "LGMS" */,
    END_MAGIC = 0x4c474d5a /* "LGMZ" */,
    VERSION = 1,
    OLDEST_READER = 1,
    HEAD = 28,
    EACH = 16,
    CRC = 4,
    END = 16,
    BLOCK = 4096
};

static void write_end(uint8_t *at, uint64_t offset)
{
    put_u64(at, offset);
    put_u32(at + 8, END_MAGIC);
    put_u32(at + 12, crc32c(at, 12));
}

struct slice log_seal_write(struct log_seal *s)
{
    log_usage_sort(&s->usage);
    const size_t size = HEAD + s->usage.n * EACH + CRC;
    const size_t whole = (size + END + BLOCK - 1) / BLOCK * BLOCK;
    struct slab *slab = slab_new(whole);
    uint8_t *at = slab_bytes(slab);
    memset(at, 0, whole);
    put_u32(at, MAGIC);
    put_u32(at + 4, VERSION << 16 | OLDEST_READER);
    put_u64(at + 8, s->log);
    put_u64(at + 16, s->offset);
    put_u32(at + 24, (uint32_t)s->usage.n);
    for (size_t i = 0; i < s->usage.n; i++) {
        put_u64(at + HEAD + i * EACH, (uint64_t)s->usage.at[i].ledger);
        put_u64(at + HEAD + i * EACH + 8, s->usage.at[i].bytes);
    }
    put_u32(at + size - CRC, crc32c(at, size - CRC));
    write_end(at + whole - END, s->offset);
    return slice_take(&slab, whole);
}

bool log_seal_begins(struct view bytes, uint64_t log, uint64_t offset)
{
    return bytes.len >= HEAD - 4 && get_u32(bytes.base) == MAGIC &&
           get_u64(bytes.base + 8) == log && get_u64(bytes.base + 16) == offset;
}

static bool is_seal(const uint8_t *at, uint64_t room, uint64_t log, uint64_t offset)
{
    const uint64_t size = HEAD + (uint64_t)get_u32(at + 24) * EACH + CRC;
    return size <= room && get_u32(at + size - CRC) == crc32c(at, size - CRC) &&
           get_u32(at) == MAGIC && get_u64(at + 8) == log && get_u64(at + 16) == offset;
}

static enum err take_usage(const uint8_t *at, struct log_usage *out)
{
    const uint32_t n = get_u32(at + 24);
    if ((get_u32(at + 4) & 0xffff) > VERSION)
        return ERR_UNSUPPORTED_VERSION;
    for (uint32_t i = 0; i < n; i++)
        log_usage_add(out, (int64_t)get_u64(at + HEAD + (size_t)i * EACH),
                      get_u64(at + HEAD + (size_t)i * EACH + 8));
    return ERR_OK;
}

static enum err find_end(struct disk_file *f, uint64_t *offset, uint64_t *size)
{
    uint8_t end[END];
    uint64_t file;
    size_t got;
    TRY(f->disk->ops->size(f, &file));
    if (file < ENTRY_LOG_HEADER + HEAD + CRC + END)
        return ERR_NOT_FOUND;
    TRY(f->disk->ops->read(f, file - END, end, END, &got));
    if (got < END || get_u32(end + 8) != END_MAGIC || get_u32(end + 12) != crc32c(end, 12))
        return ERR_NOT_FOUND;
    *offset = get_u64(end);
    if (*offset < ENTRY_LOG_HEADER || *offset > file - END - HEAD - CRC)
        return ERR_NOT_FOUND;
    *size = file - END - *offset;
    return ERR_OK;
}

enum err log_seal_read(struct disk_file *f, uint64_t log, struct log_seal *out)
{
    uint64_t offset, size;
    size_t got;
    *out = (struct log_seal){.log = log};
    TRY(find_end(f, &offset, &size));
    uint8_t *at = mem_alloc(size);
    enum err err = f->disk->ops->read(f, offset, at, size, &got);
    if (!err && (got < size || !is_seal(at, size, log, offset)))
        err = ERR_NOT_FOUND;
    if (!err)
        err = take_usage(at, &out->usage);
    out->offset = offset;
    mem_free(at);
    if (err)
        log_usage_end(&out->usage);
    return err;
}
