#include "tests/crashpoints/disk_model.h"

#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/crc32c.h"
#include "common/rng.h"

enum { SECTOR = 512, HOLE = 4096, NAMES_MAX = 4096 };

const char *const keep_names[KEEPS] = {"none", "all", "torn", "names", "bytes", "some"};

/* ---- loading -------------------------------------------------------------------------------- */

static uint8_t *load_bytes(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (!f || fstat(fileno(f), &st) != 0)
        err(1, "%s", path);
    *len = (size_t)st.st_size;
    uint8_t *bytes = malloc(*len + 1);
    if (!bytes || fread(bytes, 1, *len, f) != *len)
        err(1, "%s", path);
    fclose(f);
    return bytes;
}

static char *text_of(const uint8_t *at, size_t len)
{
    return len ? strndup((const char *)at, len) : NULL;
}

/* One record; NULL when it is not whole: the process ended while it was written. */
static const uint8_t *read_record(const uint8_t *at, const uint8_t *end, struct change *c)
{
    struct rec r;
    if (end - at < (ptrdiff_t)sizeof r)
        return NULL;
    memcpy(&r, at, sizeof r);
    if (r.magic != REC_MAGIC)
        errx(1, "the recording is broken");
    at += sizeof r;
    if (end - at < (ptrdiff_t)r.path_len + r.path2_len + (ptrdiff_t)r.payload)
        return NULL;
    *c = (struct change){.op = r.op,
                         .flags = r.flags,
                         .object = r.object,
                         .at = r.at,
                         .len = r.len,
                         .path = text_of(at, r.path_len),
                         .path2 = text_of(at + r.path_len, r.path2_len),
                         .payload_len = r.payload,
                         .durable = NEVER};
    at += r.path_len + r.path2_len;
    c->payload = r.payload ? at : NULL;
    return at + r.payload;
}

bool change_is_name(const struct change *c)
{
    switch (c->op) {
    case REC_CREATE:
    case REC_MKDIR:
    case REC_RENAME:
    case REC_UNLINK:
    case REC_RMDIR:
    case REC_LINK:
        return true;
    default:
        return false;
    }
}

bool change_is(const struct change *c)
{
    return change_is_name(c) || c->op == REC_WRITE || c->op == REC_TRUNCATE ||
           c->op == REC_ALLOCATE;
}

/* ---- what is durable, and when -------------------------------------------------------------- */

static bool is_in(const char *path, const char *dir)
{
    const char *slash = strrchr(path, '/');
    const size_t len = slash ? (size_t)(slash - path) : 0;
    return strlen(dir) == len && strncmp(path, dir, len) == 0;
}

static bool is_covered(const struct change *c, const struct change *sync)
{
    if (sync->flags & REC_DIR)
        return change_is_name(c) && is_in(c->path, sync->path ? sync->path : "");
    return !change_is_name(c) && change_is(c) && c->object == sync->object;
}

/* A failed sync leaves pages behind that count as written: no later one brings them to the disk. */
static void mark_durable(struct recording *r)
{
    bool *doomed = calloc(r->n + 1, sizeof *doomed);
    for (uint64_t i = 0; i < r->n; i++) {
        const struct change *s = &r->at[i];
        if (s->op != REC_SYNC_END && s->op != REC_SYNC_FAILED)
            continue;
        const uint64_t began = s->op == REC_SYNC_END ? s->len : i;
        for (uint64_t k = 0; k < began; k++) {
            struct change *c = &r->at[k];
            if (c->durable != NEVER || doomed[k] || !is_covered(c, s))
                continue;
            if (s->op == REC_SYNC_END)
                c->durable = i;
            else
                doomed[k] = true;
        }
    }
    free(doomed);
}

struct recording *recording_load(const char *path)
{
    struct recording *r = calloc(1, sizeof *r);
    size_t len, room = 0;
    r->bytes = load_bytes(path, &len);
    const uint8_t *at = r->bytes, *end = at + len;
    while (at && at < end) {
        if (r->n == room) {
            room = room ? room * 2 : 1024;
            r->at = realloc(r->at, room * sizeof *r->at);
        }
        at = read_record(at, end, &r->at[r->n]);
        if (!at)
            break;
        const struct change *c = &r->at[r->n++];
        if (c->object > r->objects)
            r->objects = c->object;
        if (c->op == REC_UNSUPPORTED)
            r->fault = c->path;
    }
    mark_durable(r);
    return r;
}

/* ---- which changes are there ---------------------------------------------------------------- */

enum fate { GONE, THERE, TORN, GROWN /* the file is as long, but zeros are there */ };

static uint64_t chance(const struct crash *c, uint64_t of, uint64_t what)
{
    uint64_t seed = c->seed * 0x9e3779b97f4a7c15u ^ c->after << 20 ^ of << 40 ^ what;
    return rng_next(&seed);
}

/* RocksDB renames CURRENT to what names a file before it syncs the directory that both are in: it
 * trusts that names come in their order, as they do with ext4, XFS and btrfs.  We do not. */
static bool is_ordered(const char *path)
{
    return strstr(path, "/index/") != NULL;
}

static enum fate fate_of_some(const struct recording *r, const struct crash *c, uint64_t i)
{
    const struct change *x = &r->at[i];
    if (change_is_name(x) && is_ordered(x->path))
        return i < c->after - chance(c, 0, 0) % 8 ? THERE : GONE;
    if (change_is_name(x))
        return chance(c, 0, i) % 2 ? THERE : GONE;
    switch (chance(c, x->object, 0) % 4) {
    case 0:
        return GONE;
    case 1:
        return THERE;
    case 2: /* a prefix in time, torn at its end */
        return i < c->after - chance(c, x->object, 1) % 20 ? THERE : TORN;
    default:
        return (enum fate)(chance(c, x->object, i) % 4);
    }
}

static enum fate fate_of(const struct recording *r, const struct crash *c, uint64_t i,
                         uint64_t last_write)
{
    const struct change *x = &r->at[i];
    if (x->durable <= c->after)
        return THERE;
    switch (c->keep) {
    case KEEP_ALL:
        return THERE;
    case KEEP_TORN:
        return i == last_write ? TORN : THERE;
    case KEEP_NAMES:
        return change_is_name(x) ? THERE : GONE;
    case KEEP_BYTES:
        return change_is_name(x) ? GONE : THERE;
    case KEEP_SOME:
        return fate_of_some(r, c, i);
    default:
        return GONE;
    }
}

/* ---- names ---------------------------------------------------------------------------------- */

struct names {
    unsigned n;
    struct name {
        const char *path;
        uint32_t object;
        bool is_dir;
    } at[NAMES_MAX];
};

static struct name *name_find(struct names *d, const char *path)
{
    for (unsigned i = 0; i < d->n; i++)
        if (strcmp(d->at[i].path, path) == 0)
            return &d->at[i];
    return NULL;
}

static void name_remove(struct names *d, const char *path)
{
    struct name *n = name_find(d, path);
    if (n)
        *n = d->at[--d->n];
}

/* A name whose directory is not there is not there. */
static void name_put(struct names *d, const char *path, uint32_t object, bool is_dir)
{
    char parent[REC_PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (object == 0)
        return;
    snprintf(parent, sizeof parent, "%.*s", slash ? (int)(slash - path) : 0, path);
    if (slash && !name_find(d, parent))
        return;
    name_remove(d, path);
    if (d->n == NAMES_MAX)
        errx(1, "more than %d names", NAMES_MAX);
    d->at[d->n++] = (struct name){path, object, is_dir};
}

static void name_change(struct names *d, const struct change *c)
{
    switch (c->op) {
    case REC_CREATE:
    case REC_MKDIR:
        name_put(d, c->path, c->object, c->op == REC_MKDIR);
        break;
    case REC_RENAME:
        name_remove(d, c->path);
        name_put(d, c->path2, c->object, false);
        break;
    case REC_LINK:
        name_put(d, c->path2, c->object, false);
        break;
    case REC_UNLINK:
    case REC_RMDIR:
        name_remove(d, c->path);
        break;
    default:
        break;
    }
}

static int by_path(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    return strcmp(x->path, y->path);
}

static void names_after(const struct recording *r, const struct crash *c, struct names *out)
{
    out->n = 0;
    for (uint64_t i = 0; i <= c->after && i < r->n; i++)
        if (change_is_name(&r->at[i]) && fate_of(r, c, i, NEVER) != GONE)
            name_change(out, &r->at[i]);
    qsort(out->at, out->n, sizeof out->at[0], by_path);
}

/* ---- bytes ---------------------------------------------------------------------------------- */

struct content {
    uint8_t *bytes;
    uint64_t len, room;
};

static void content_grow(struct content *f, uint64_t len)
{
    if (len > f->room) {
        f->room = len * 2;
        f->bytes = realloc(f->bytes, f->room);
    }
    if (len > f->len) {
        memset(f->bytes + f->len, 0, len - f->len);
        f->len = len;
    }
}

static void content_put(struct content *f, const struct change *c, uint64_t from, uint64_t to)
{
    content_grow(f, to);
    if (c->payload)
        memcpy(f->bytes + from, c->payload + (from - c->at), to - from);
    else
        memset(f->bytes + from, 0, to - from);
}

/* Sectors up to some place, or each for itself. */
static void content_tear(struct content *f, const struct change *c, const struct crash *crash,
                         uint64_t i)
{
    const uint64_t end = c->at + c->len, first = c->at / SECTOR;
    const uint64_t sectors = (end + SECTOR - 1) / SECTOR - first;
    const bool is_prefix = chance(crash, i, 2) % 2;
    const uint64_t cut = chance(crash, i, 3) % (sectors + 1);
    for (uint64_t s = 0; s < sectors; s++) {
        uint64_t from = (first + s) * SECTOR, to = from + SECTOR;
        if (is_prefix ? s >= cut : chance(crash, i, 4 + s) % 2)
            continue;
        if (from < c->at)
            from = c->at;
        content_put(f, c, from, to < end ? to : end);
    }
}

static void content_change(struct content *f, const struct change *c, enum fate fate,
                           const struct crash *crash, uint64_t i)
{
    if (fate == GONE)
        return;
    if (c->op == REC_TRUNCATE) {
        content_grow(f, c->len);
        f->len = c->len;
    } else if (c->op == REC_ALLOCATE) {
        content_grow(f, c->len);
    } else if (fate == THERE) {
        content_put(f, c, c->at, c->at + c->len);
    } else if (fate == TORN) {
        content_tear(f, c, crash, i);
    } else {
        content_grow(f, c->at + c->len);
    }
}

static void write_out(const struct content *f, const char *dir, const char *path)
{
    char whole[2048];
    snprintf(whole, sizeof whole, "%s/%s", dir, path);
    const int fd = open(whole, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (fd < 0 || ftruncate(fd, (off_t)f->len) != 0)
        err(1, "%s", whole);
    static const uint8_t zeros[HOLE];
    for (uint64_t at = 0; at < f->len;) {
        uint64_t end = at;
        while (end < f->len) {
            const uint64_t n = f->len - end < HOLE ? f->len - end : HOLE;
            if (memcmp(f->bytes + end, zeros, n) == 0)
                break;
            end += n;
        }
        if (end > at && pwrite(fd, f->bytes + at, end - at, (off_t)at) != (ssize_t)(end - at))
            err(1, "%s", whole);
        at = end + HOLE;
    }
    close(fd);
}

static uint64_t last_write_until(const struct recording *r, uint64_t at)
{
    for (uint64_t i = at + 1; i > 0; i--)
        if (i - 1 < r->n && r->at[i - 1].op == REC_WRITE)
            return i - 1;
    return NEVER;
}

static void make_dir(const char *dir, const char *path)
{
    char whole[2048];
    snprintf(whole, sizeof whole, "%s/%s", dir, path);
    if (mkdir(whole, 0755) != 0)
        err(1, "%s", whole);
}

uint64_t disk_build(const struct recording *r, const struct crash *c, const char *dir)
{
    static struct names names;
    const uint64_t last = last_write_until(r, c->after);
    struct content *of = calloc(r->objects + 1, sizeof *of);
    bool *wanted = calloc(r->objects + 1, sizeof *wanted);
    uint64_t sum = 1;
    names_after(r, c, &names);
    for (unsigned i = 0; i < names.n; i++)
        wanted[names.at[i].object] = !names.at[i].is_dir;
    for (uint64_t i = 0; i <= c->after && i < r->n; i++) {
        const struct change *x = &r->at[i];
        if (change_is(x) && !change_is_name(x) && wanted[x->object])
            content_change(&of[x->object], x, fate_of(r, c, i, last), c, i);
    }
    for (unsigned i = 0; i < names.n; i++) {
        const struct name *n = &names.at[i];
        const struct content *f = &of[n->object];
        sum = sum * 0x100000001b3u ^ crc32c(n->path, strlen(n->path));
        sum = sum * 0x100000001b3u ^ crc32c(f->bytes, f->len) ^ f->len << 32;
        if (dir && n->is_dir)
            make_dir(dir, n->path);
        else if (dir)
            write_out(f, dir, n->path);
    }
    for (uint32_t i = 0; i <= r->objects; i++)
        free(of[i].bytes);
    free(of);
    free(wanted);
    return sum;
}
