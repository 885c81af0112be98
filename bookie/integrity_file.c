#include "bookie/integrity_file.h"

#include "bookie/bytes.h"
#include "common/crc32c.h"
#include "common/log.h"
#include "common/mem.h"

enum {
    MAGIC = 0x4c474d49 /* "LGMI" */,
    VERSION = 1,
    OLDEST_READER = 1,
    SIZE = 24,
    FILE_MAX = 4096
};

static char *path_in(const char *dir)
{
    return mem_format("%s/" INTEGRITY_FILE, dir);
}

static enum err parse(const uint8_t *bytes, size_t len, struct integrity_state *out)
{
    if (len < SIZE || get_u32(bytes) != MAGIC)
        return ERR_CHECKSUM;
    if ((get_u32(bytes + 4) & 0xffff) > VERSION)
        return ERR_UNSUPPORTED_VERSION;
    if (get_u32(bytes + SIZE - 4) != crc32c(bytes, SIZE - 4))
        return ERR_CHECKSUM;
    const uint32_t need = get_u32(bytes + 8);
    if (need > INTEGRITY_SCAN)
        return ERR_CHECKSUM;
    *out = (struct integrity_state){(enum integrity_need)need, (int64_t)get_u64(bytes + 12)};
    return ERR_OK;
}

enum err integrity_load(struct disk *d, const char *dir, struct integrity_state *out)
{
    char *bytes, *path = path_in(dir);
    size_t len;
    *out = (struct integrity_state){INTEGRITY_WHOLE, -1};
    enum err err = disk_load(d, path, FILE_MAX, &bytes, &len);
    if (!err) {
        err = parse((const uint8_t *)bytes, len, out);
        mem_free(bytes);
    } else if (err == ERR_NOT_FOUND) {
        err = ERR_OK;
    }
    if (err)
        log_event(LOG_ERROR, "integrity.unreadable", F_STR("path", path), F_ERR(err));
    mem_free(path);
    return err;
}

enum err integrity_store(struct disk *d, const char *dir, const struct integrity_state *state)
{
    uint8_t bytes[SIZE];
    char *path = path_in(dir);
    put_u32(bytes, MAGIC);
    put_u32(bytes + 4, VERSION << 16 | OLDEST_READER);
    put_u32(bytes + 8, (uint32_t)state->need);
    put_u64(bytes + 12, (uint64_t)state->newest);
    put_u32(bytes + SIZE - 4, crc32c(bytes, SIZE - 4));
    const enum err err = disk_store(d, path, bytes, sizeof bytes);
    mem_free(path);
    return err;
}

enum err integrity_raise(struct disk *d, const char *dir, enum integrity_need need)
{
    struct integrity_state s;
    TRY(integrity_load(d, dir, &s));
    if (s.need >= need)
        return ERR_OK;
    s.need = need;
    return integrity_store(d, dir, &s);
}
