#include "proto/compress.h"

#include <assert.h>
#include <limits.h>
#include <lz4.h>
#include <pthread.h>
#include <snappy-c.h>
#include <stdbool.h>
#include <zlib.h>
#include <zstd.h>

#include "common/mem.h"

/* ---- zstd's contexts ---- */

struct zstd {
    ZSTD_CCtx *pack;
    ZSTD_DCtx *unpack;
};

static pthread_key_t zstd_key;
static pthread_once_t zstd_once = PTHREAD_ONCE_INIT;

static void zstd_free(void *arg)
{
    struct zstd *z = arg;
    ZSTD_freeCCtx(z->pack);
    ZSTD_freeDCtx(z->unpack);
    mem_free(z);
}

static void zstd_key_make(void)
{
    int rc = pthread_key_create(&zstd_key, zstd_free);
    assert(rc == 0); /* a process has 1024 keys */
    (void)rc;
}

/* A context is costly to make and holds no state between calls: one a thread. */
static struct zstd *zstd_here(void)
{
    struct zstd *z;

    pthread_once(&zstd_once, zstd_key_make);
    z = pthread_getspecific(zstd_key);
    if (z)
        return z;
    z = mem_new(struct zstd);
    z->pack = ZSTD_createCCtx();
    z->unpack = ZSTD_createDCtx();
    pthread_setspecific(zstd_key, z);
    return z;
}

/* ---- packing: into room bytes, *n are written ---- */

static bool lz4_pack(struct view v, uint8_t *into, size_t room, size_t *n)
{
    int done = LZ4_compress_default((const char *)v.base, (char *)into, (int)v.len, (int)room);
    *n = (size_t)done;
    return done > 0;
}

static bool zlib_pack(struct view v, uint8_t *into, size_t room, size_t *n)
{
    uLongf done = room;
    int rc = compress2(into, &done, v.base, v.len, Z_DEFAULT_COMPRESSION);
    *n = done;
    return rc == Z_OK;
}

static bool zstd_pack(struct view v, uint8_t *into, size_t room, size_t *n)
{
    *n = ZSTD_compressCCtx(zstd_here()->pack, into, room, v.base, v.len, ZSTD_CLEVEL_DEFAULT);
    return !ZSTD_isError(*n);
}

static bool snappy_pack(struct view v, uint8_t *into, size_t room, size_t *n)
{
    *n = room;
    return snappy_compress((const char *)v.base, v.len, (char *)into, n) == SNAPPY_OK;
}

static size_t lz4_bound(size_t len)
{
    return (size_t)LZ4_compressBound((int)len);
}

/* ---- unpacking: exactly size bytes, or it is not what was declared ---- */

static bool lz4_unpack(struct view v, uint8_t *into, size_t size)
{
    int done = LZ4_decompress_safe((const char *)v.base, (char *)into, (int)v.len, (int)size);
    return done >= 0 && (size_t)done == size;
}

static bool zlib_unpack(struct view v, uint8_t *into, size_t size)
{
    uLongf done = size;
    return uncompress(into, &done, v.base, v.len) == Z_OK && done == size;
}

static bool zstd_unpack(struct view v, uint8_t *into, size_t size)
{
    return ZSTD_decompressDCtx(zstd_here()->unpack, into, size, v.base, v.len) == size;
}

static bool snappy_unpack(struct view v, uint8_t *into, size_t size)
{
    size_t done;

    if (snappy_uncompressed_length((const char *)v.base, v.len, &done) != SNAPPY_OK || done != size)
        return false;
    return snappy_uncompress((const char *)v.base, v.len, (char *)into, &done) == SNAPPY_OK;
}

/* ---- the table ---- */

static const struct algorithm {
    size_t most; /* what it can take */
    size_t (*bound)(size_t len);
    bool (*pack)(struct view plain, uint8_t *into, size_t room, size_t *n);
    bool (*unpack)(struct view packed, uint8_t *into, size_t size);
} algorithms[] = {
    [COMPRESS_LZ4] = {LZ4_MAX_INPUT_SIZE, lz4_bound, lz4_pack, lz4_unpack},
    [COMPRESS_ZLIB] = {INT_MAX, compressBound, zlib_pack, zlib_unpack},
    [COMPRESS_ZSTD] = {INT_MAX, ZSTD_compressBound, zstd_pack, zstd_unpack},
    [COMPRESS_SNAPPY] = {INT_MAX, snappy_max_compressed_length, snappy_pack, snappy_unpack},
};

static const struct algorithm *algorithm_of(enum compression how)
{
    size_t n = (size_t)how;
    return n < sizeof(algorithms) / sizeof(*algorithms) && algorithms[n].pack ? &algorithms[n]
                                                                              : NULL;
}

enum err compress_with(enum compression how, struct view plain, struct slice *out)
{
    const struct algorithm *a = algorithm_of(how);
    struct slab *slab;
    size_t n, room;

    *out = (struct slice){0};
    if (how == COMPRESS_NONE) {
        *out = slice_copy(plain.base, plain.len);
        return ERR_OK;
    }
    if (!a)
        return ERR_MALFORMED;
    if (plain.len > a->most)
        return ERR_TOO_BIG;
    room = a->bound(plain.len);
    slab = slab_new(room);
    if (!a->pack(plain, slab_bytes(slab), room, &n)) {
        slab_drop(&slab);
        return ERR_TOO_BIG; /* the room was the algorithm's own bound: only size can be wrong */
    }
    *out = slice_take(&slab, n);
    return ERR_OK;
}

static enum err copy(struct view packed, size_t size, struct slice *out)
{
    if (packed.len != size)
        return ERR_MALFORMED;
    *out = slice_copy(packed.base, size);
    return ERR_OK;
}

enum err decompress(enum compression how, struct view packed, size_t size, size_t max,
                    struct slice *out)
{
    const struct algorithm *a = algorithm_of(how);
    struct slab *slab;

    *out = (struct slice){0};
    if (size > max || size > INT_MAX || packed.len > INT_MAX)
        return ERR_TOO_BIG;
    if (how == COMPRESS_NONE)
        return copy(packed, size, out);
    if (!a)
        return ERR_MALFORMED;
    slab = slab_new(size);
    if (!a->unpack(packed, slab_bytes(slab), size)) {
        slab_drop(&slab);
        return ERR_MALFORMED;
    }
    *out = slice_take(&slab, size);
    return ERR_OK;
}
