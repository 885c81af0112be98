#include "metadata/ids.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/parse.h"
#include "metadata/paths.h"
#include "metadata/wait.h"

#define BUCKET_PREFIX PATH_IDGEN_LONG "HOB-"

/* A bucket is 31 bits of an id; others may claim while we look, but not for ever. */
enum { BUCKET_MAX = INT32_MAX - 1, TRIES = 100, PAGE = 1000 };

struct buckets {
    struct meta_wait wait;
    uint64_t largest;
    char *last;
};

static uint64_t bucket_of(const char *key)
{
    char text[16];
    uint64_t n = 0;
    size_t len = strcspn(key + strlen(BUCKET_PREFIX), "/");

    if (len >= sizeof text)
        return 0;
    memcpy(text, key + strlen(BUCKET_PREFIX), len);
    text[len] = '\0';
    return parse_u64(text, &n) || n > BUCKET_MAX ? 0 : n;
}

static void see(struct meta_wait *w, const struct meta_reply *r)
{
    struct buckets *b = container_of(w, struct buckets, wait);

    for (size_t i = 0; i < r->count; i++) {
        uint64_t n = bucket_of(r->items[i].key);
        b->largest = n > b->largest ? n : b->largest;
    }
    mem_free(b->last);
    b->last = r->more ? mem_string(r->items[r->count - 1].key) : NULL;
}

static enum err find_largest(struct metadata *m, uint64_t *largest)
{
    struct buckets b = {0};
    enum err e;

    do {
        meta_wait_begin(&b.wait);
        b.wait.look = see;
        meta_range(m, BUCKET_PREFIX, b.last, PAGE, true, &b.wait.call);
        e = meta_wait_end(&b.wait);
    } while (!e && b.last);
    mem_free(b.last);
    *largest = b.largest;
    return e;
}

static struct slice number(uint64_t n)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, n);
    return slice_copy(text, strlen(text));
}

/* All at once: no foreign client ever sees ours as the largest. */
static enum err take(struct metadata *m, uint64_t bucket)
{
    char *ours = mem_format(BUCKET_PREFIX "%010" PRIu64, bucket);
    char *theirs = mem_format(BUCKET_PREFIX "%010" PRIu64, bucket + 1);
    struct meta_op ops[] = {
        {META_PUT, ours, {0}, META_ABSENT},
        {META_PUT, theirs, {0}, META_ABSENT},
        {META_PUT, PATH_LEDGER_BUCKET, number(bucket), META_ABSENT},
        {META_PUT, PATH_LEDGER_COUNTER, number(bucket << 32), META_ABSENT},
    };
    struct meta_wait w;

    meta_wait_begin(&w);
    meta_txn(m, ops, sizeof ops / sizeof *ops, &w.call);
    enum err e = meta_wait_end(&w);
    mem_free(ours);
    mem_free(theirs);
    return e;
}

static enum err is_claimed(struct metadata *m, bool *out)
{
    struct slice value = {0};
    enum err e = meta_get_wait(m, PATH_LEDGER_BUCKET, &value, NULL);

    *out = !e;
    slice_drop(&value);
    return e == ERR_NOT_FOUND ? ERR_OK : e;
}

enum err ledger_ids_claim(struct metadata *m)
{
    for (int i = 0; i < TRIES; i++) {
        uint64_t largest;
        bool claimed;
        TRY(is_claimed(m, &claimed));
        if (claimed)
            return ERR_OK;
        TRY(find_largest(m, &largest));
        if (largest + 1 >= BUCKET_MAX)
            break;
        enum err e = take(m, largest + 1);
        if (e != ERR_BAD_VERSION)
            return e;
    }
    log_event(LOG_ERROR, "ledger_ids.not_claimed", F_STR("under", PATH_IDGEN_LONG));
    return ERR_EXISTS;
}
