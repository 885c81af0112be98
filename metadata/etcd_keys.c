#include "metadata/etcd_keys.h"

#include <string.h>

#include "common/mem.h"

char *etcd_key(const char *root, const char *key)
{
    return mem_format("%s%s", root, key);
}

char *etcd_key_shown(const char *root, struct view key)
{
    size_t len = strlen(root);

    if (key.len <= len || memcmp(key.base, root, len) != 0 || memchr(key.base, 0, key.len))
        return NULL;
    return mem_string_n((const char *)key.base + len, key.len - len);
}

/* The least that comes after all that begins with what `to` holds. */
static void step_over(struct etcd_span *s)
{
    while (s->to_len > 0 && s->to[s->to_len - 1] == 0xff)
        s->to_len--;
    if (s->to_len > 0)
        s->to[s->to_len - 1]++;
    else
        s->to[s->to_len++] = 0;
}

void etcd_span_after(struct etcd_span *s, struct view key)
{
    uint8_t *from = mem_alloc(key.len + 1);

    memcpy(from, key.base, key.len);
    mem_free(s->from);
    s->from = from;
    s->from_len = key.len + 1; /* a zero byte behind it: the very next key */
}

struct etcd_span etcd_span_of(const char *root, const char *prefix, const char *after)
{
    struct etcd_span s = {0};
    char *first = etcd_key(root, prefix), *behind = after ? etcd_key(root, after) : NULL;

    s.to_len = strlen(first);
    s.to = mem_alloc(s.to_len + 1);
    memcpy(s.to, first, s.to_len);
    step_over(&s);
    s.from_len = *first ? strlen(first) : 1; /* etcd knows no empty key: one zero byte */
    s.from = (uint8_t *)first;
    if (behind && strcmp(behind, first) >= 0)
        etcd_span_after(&s, view_of(behind, strlen(behind)));
    mem_free(behind);
    return s;
}

void etcd_span_drop(struct etcd_span *s)
{
    mem_free(s->from);
    mem_free(s->to);
    *s = (struct etcd_span){0};
}
