#include "metadata/stage.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/parse.h"

void stage_init(struct stage *s, struct shelf *shelf)
{
    *s = (struct stage){.shelf = shelf, .revision = shelf->revision};
}

void stage_end(struct stage *s)
{
    stage_reset(s);
    mem_free(s->changes);
    key_map_clear(&s->held);
}

enum err stage_get(struct stage *s, const char *key, struct key_item *out)
{
    const struct key_item *i = key_map_find(&s->waiting, key);

    if (!i)
        i = key_map_find(&s->held, key);
    if (!i)
        return s->shelf->ops->get(s->shelf, key, out);
    if (i->gone)
        return ERR_NOT_FOUND;
    *out = *i;
    out->key = NULL;
    out->value = slice_share(i->value);
    return ERR_OK;
}

/* The version a key has now, META_ABSENT without one. */
static enum err state_of(struct stage *s, const char *key, int64_t *version, bool *held)
{
    struct key_item now = {0};
    enum err e = stage_get(s, key, &now);

    *version = META_ABSENT;
    *held = false;
    if (e == ERR_NOT_FOUND)
        return ERR_OK;
    TRY(e);
    *version = now.version;
    *held = now.held;
    slice_drop(&now.value);
    return ERR_OK;
}

static void note(struct stage *s, const struct key_item *i)
{
    if (s->n == s->room) {
        s->room = s->room ? s->room * 2 : 64;
        s->changes = mem_resize(s->changes, s->room * sizeof *s->changes);
    }
    s->changes[s->n++] = (struct meta_change){
        .kind = i->gone ? META_CHANGED_REMOVED : META_CHANGED_PUT,
        .key = mem_string(i->key),
        .value = slice_share(i->value),
        .version = i->version,
        .revision = i->revision,
    };
    s->bytes += strlen(i->key) + i->value.len;
}

/* Takes the item's value. */
static void change(struct stage *s, const struct key_item *i)
{
    note(s, i);
    key_map_put(&s->waiting, i);
}

/* What a key is before the step. */
struct before {
    int64_t version;
    bool held;
};

static enum err allowed(struct stage *s, const struct meta_op *ops, size_t n, size_t at,
                        struct before *out)
{
    const struct meta_op *op = &ops[at];

    for (size_t i = 0; i < at && op->kind != META_CHECK; i++)
        if (ops[i].kind != META_CHECK && strcmp(ops[i].key, op->key) == 0)
            return ERR_NOT_ALLOWED;
    TRY(state_of(s, op->key, &out->version, &out->held));
    if (n == 1 && op->kind == META_REMOVE && out->version == META_ABSENT)
        return ERR_NOT_FOUND;
    return op->expected == META_ANY || op->expected == out->version ? ERR_OK : ERR_BAD_VERSION;
}

static void step(struct stage *s, const struct meta_op *op, const struct before *b)
{
    struct key_item i = {.key = (char *)(uintptr_t)op->key,
                         .version = b->version,
                         .revision = s->revision,
                         .held = b->held};

    if (op->kind == META_PUT) {
        i.version++;
        i.value = slice_share(op->value);
        change(s, &i);
    } else if (op->kind == META_REMOVE && i.version != META_ABSENT) {
        i.gone = true;
        change(s, &i);
    }
}

enum err stage_apply(struct stage *s, const struct meta_op *ops, size_t n)
{
    struct before before[META_OPS_MAX];

    for (size_t i = 0; i < n; i++)
        TRY(allowed(s, ops, n, i, &before[i]));
    s->revision++;
    for (size_t i = 0; i < n; i++)
        step(s, &ops[i], &before[i]);
    return ERR_OK;
}

enum err stage_hold(struct stage *s, const char *key, struct slice value)
{
    struct key_item i = {.key = (char *)(uintptr_t)key};

    TRY(state_of(s, key, &i.version, &i.held));
    if (i.version != META_ABSENT && !i.held)
        return ERR_EXISTS;
    i.version++;
    i.held = true;
    i.revision = ++s->revision;
    i.value = slice_share(value);
    change(s, &i);
    return ERR_OK;
}

enum err stage_release(struct stage *s, const char *key)
{
    struct key_item i = {.key = (char *)(uintptr_t)key, .gone = true};

    TRY(state_of(s, key, &i.version, &i.held));
    if (!i.held)
        return ERR_NOT_FOUND;
    i.revision = ++s->revision;
    change(s, &i);
    return ERR_OK;
}

static enum err count_of(struct stage *s, const char *key, int64_t *next)
{
    struct key_item now = {0};
    enum err e = stage_get(s, key, &now);
    char text[24] = "0";

    if (e == ERR_NOT_FOUND)
        e = ERR_OK;
    else if (!e && now.value.len < sizeof text)
        snprintf(text, sizeof text, "%.*s", (int)now.value.len, (const char *)now.value.base);
    else if (!e)
        e = ERR_MALFORMED;
    slice_drop(&now.value);
    TRY(e);
    TRY(parse_i64(text, next));
    return *next < 0 ? ERR_MALFORMED : ERR_OK;
}

enum err stage_count(struct stage *s, const char *key, int64_t n, int64_t *first)
{
    struct meta_op put = {.kind = META_PUT, .key = key, .expected = META_ANY};
    char text[24];
    int64_t end;
    enum err e;

    if (n < 1)
        return ERR_NOT_ALLOWED;
    TRY(count_of(s, key, first));
    if (__builtin_add_overflow(*first, n, &end))
        return ERR_TOO_BIG;
    snprintf(text, sizeof text, "%lld", (long long)end);
    put.value = slice_copy(text, strlen(text));
    e = stage_apply(s, &put, 1);
    slice_drop(&put.value);
    return e;
}

static void keep_held(struct stage *s)
{
    for (size_t i = 0; i < s->waiting.n; i++) {
        struct key_item kept = *s->waiting.at[i];
        if (!kept.held || kept.gone) {
            key_map_remove(&s->held, kept.key);
            continue;
        }
        kept.value = slice_share(kept.value);
        key_map_put(&s->held, &kept);
    }
}

enum err stage_commit(struct stage *s)
{
    if (s->waiting.n == 0)
        return ERR_OK;
    enum err e = s->shelf->ops->commit(s->shelf, &s->waiting, s->revision);
    if (!e) {
        s->shelf->revision = s->revision;
        keep_held(s);
    }
    return e;
}

void stage_reset(struct stage *s)
{
    key_map_clear(&s->waiting);
    for (size_t i = 0; i < s->n; i++) {
        mem_free((char *)(uintptr_t)s->changes[i].key);
        slice_drop(&s->changes[i].value);
    }
    s->n = s->bytes = 0;
    s->revision = s->shelf->revision;
}
