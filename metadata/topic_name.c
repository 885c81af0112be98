#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/parse.h"
#include "metadata/names.h"
#include "metadata/paths.h"

static const char partition_mark[] = "-partition-";

/* The first '/' ends *part; what follows is *rest, NULL without a '/'.  Gives *part. */
static void cut(const char *text, char **part, const char **rest)
{
    const char *slash = strchr(text, '/');

    *part = slash ? mem_string_n(text, (size_t)(slash - text)) : mem_string(text);
    *rest = slash ? slash + 1 : NULL;
}

/* Pulsar's rule: digits without leading zeros that fit an int, after the last mark.  A name
 * that would have nothing before the mark has no partition. */
static int32_t partition_of(const char *local, size_t *base_len)
{
    const char *mark = NULL;
    uint64_t n;

    *base_len = strlen(local);
    for (const char *at = strstr(local, partition_mark); at; at = strstr(at + 1, partition_mark))
        mark = at;
    if (!mark || mark == local)
        return -1;
    const char *digits = mark + strlen(partition_mark);
    if (digits[strspn(digits, "0123456789")] != '\0' || (digits[0] == '0' && digits[1]))
        return -1;
    if (parse_u64(digits, &n) || n > INT32_MAX)
        return -1;
    *base_len = (size_t)(mark - local);
    return (int32_t)n;
}

size_t topic_name_base_len(const char *local)
{
    size_t len;

    (void)partition_of(local, &len);
    return len;
}

struct parts {
    bool persistent;
    char *tenant, *ns, *local;
};

/* A name of four parts is of the time before 2.0 (tenant/cluster/namespace/topic): refused,
 * as any '/' in the last part is. */
static enum err take_parts(const char *text, struct parts *n)
{
    const char *rest;

    cut(text, &n->tenant, &rest);
    if (!rest)
        return ERR_INVALID_NAME;
    cut(rest, &n->ns, &rest);
    if (!rest || strchr(rest, '/'))
        return ERR_INVALID_NAME;
    n->local = mem_string(rest);
    return ERR_OK;
}

static enum err take_text(const char *text, struct parts *n)
{
    static const char durable[] = "persistent://", fleeting[] = "non-persistent://";

    n->persistent = true;
    if (strncmp(text, durable, strlen(durable)) == 0)
        return take_parts(text + strlen(durable), n);
    if (strncmp(text, fleeting, strlen(fleeting)) == 0) {
        n->persistent = false;
        return take_parts(text + strlen(fleeting), n);
    }
    if (strstr(text, "://"))
        return ERR_INVALID_NAME;
    if (strchr(text, '/'))
        return take_parts(text, n);
    n->tenant = mem_string("public");
    n->ns = mem_string("default");
    n->local = mem_string(text);
    return ERR_OK;
}

static enum err check(const struct parts *n)
{
    if (!name_is_entity(n->tenant) || !name_is_entity(n->ns))
        return ERR_INVALID_NAME;
    return name_is_local(n->local) ? ERR_OK : ERR_INVALID_NAME;
}

/* All in one piece of memory: "full\0tenant\0namespace\0base\0", the last one only of a partition.
 */
static void put_together(const struct parts *p, struct topic_name *out)
{
    const char *scheme = p->persistent ? "persistent" : "non-persistent";
    size_t base_len;

    out->persistent = p->persistent;
    out->partition = partition_of(p->local, &base_len);
    if (out->partition < 0)
        out->full = mem_format("%s://%s/%s/%s%c%s%c%s", scheme, p->tenant, p->ns, p->local, 0,
                               p->tenant, 0, p->ns);
    else
        out->full = mem_format("%s://%s/%s/%s%c%s%c%s%c%s://%s/%s/%.*s", scheme, p->tenant, p->ns,
                               p->local, 0, p->tenant, 0, p->ns, 0, scheme, p->tenant, p->ns,
                               (int)base_len, p->local);
    out->tenant = out->full + strlen(out->full) + 1;
    out->ns = out->tenant + strlen(out->tenant) + 1;
    out->base = out->partition < 0 ? out->full : out->ns + strlen(out->ns) + 1;
    out->local = out->full + strlen(out->full) - strlen(p->local);
}

enum err topic_name_parse(const char *text, struct topic_name *out)
{
    struct parts parts = {0};
    enum err e = take_text(text, &parts);

    *out = (struct topic_name){.partition = -1};
    if (!e)
        e = check(&parts);
    if (!e)
        put_together(&parts, out);
    mem_free(parts.tenant);
    mem_free(parts.ns);
    mem_free(parts.local);
    return e;
}

void topic_name_drop(struct topic_name *n)
{
    mem_free(n->full);
    *n = (struct topic_name){.partition = -1};
}
