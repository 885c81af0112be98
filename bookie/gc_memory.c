#include "bookie/gc_memory.h"

#include <string.h>

#include "bookie/bytes.h"
#include "common/crc32c.h"
#include "common/log.h"
#include "common/mem.h"

enum {
    MAGIC = 0x4c474d47 /* "LGMG" */,
    VERSION = 1,
    OLDEST_READER = 1,
    INSTANCE = 10,
    STORE = INSTANCE + GC_INSTANCE_MAX,
    REVISION = STORE + 8,
    BEACON = REVISION + 8,
    NEXT = BEACON + GC_BEACON,
    SIZE = NEXT + GC_BEACON + 4,
    ROOM = 4096
};

static enum err read_memory(const uint8_t *at, size_t len, struct gc_memory *out)
{
    if (len < SIZE || get_u32(at) != MAGIC || get_u32(at + SIZE - 4) != crc32c(at, SIZE - 4))
        return ERR_CHECKSUM;
    if ((get_u32(at + 4) & 0xffff) > VERSION)
        return ERR_UNSUPPORTED_VERSION;
    if (at[9] >= GC_HALTS)
        return ERR_CHECKSUM;
    *out = (struct gc_memory){.is_known = at[8], .halt = at[9]};
    memcpy(out->instance, at + INSTANCE, GC_INSTANCE_MAX);
    out->store = get_u64(at + STORE);
    out->revision = get_u64(at + REVISION);
    memcpy(out->beacon, at + BEACON, GC_BEACON);
    memcpy(out->next, at + NEXT, GC_BEACON);
    return ERR_OK;
}

static bool counts_more(const struct gc_memory *a, const struct gc_memory *than)
{
    if (than->halt)
        return false;
    return a->halt || (a->is_known && (!than->is_known || a->revision > than->revision));
}

void gc_memory_load(struct disk *d, const char *dir, struct gc_memory *into)
{
    struct gc_memory found = {0};
    char *path = mem_format("%s/gc", dir), *bytes;
    size_t len;
    enum err err = disk_load(d, path, ROOM, &bytes, &len);
    if (!err) {
        err = read_memory((const uint8_t *)bytes, len, &found);
        mem_free(bytes);
    }
    if (err && err != ERR_NOT_FOUND) {
        log_event(LOG_ERROR, "gc.memory_unreadable", F_STR("path", path), F_ERR(err));
        found = (struct gc_memory){.halt = GC_MEMORY_LOST};
    }
    if (err != ERR_NOT_FOUND && counts_more(&found, into))
        *into = found;
    mem_free(path);
}

enum err gc_memory_store(struct disk *d, const char *dir, const struct gc_memory *m)
{
    uint8_t at[SIZE] = {0};
    put_u32(at, MAGIC);
    put_u32(at + 4, VERSION << 16 | OLDEST_READER);
    at[8] = m->is_known;
    at[9] = (uint8_t)m->halt;
    memcpy(at + INSTANCE, m->instance, GC_INSTANCE_MAX);
    put_u64(at + STORE, m->store);
    put_u64(at + REVISION, m->revision);
    memcpy(at + BEACON, m->beacon, GC_BEACON);
    memcpy(at + NEXT, m->next, GC_BEACON);
    put_u32(at + SIZE - 4, crc32c(at, SIZE - 4));
    char *path = mem_format("%s/gc", dir);
    const enum err err = disk_store(d, path, at, sizeof at);
    mem_free(path);
    return err;
}
