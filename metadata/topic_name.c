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

/* A name of four parts is of the time before 2.0 (tenant/cluster/namespace/topic): refused,
 * as any '/' in the last part is. */
static enum err take_parts(const char *text, struct topic_name *n)
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

static enum err take_text(const char *text, struct topic_name *n)
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

static enum err check(const struct topic_name *n)
{
    if (!name_is_entity(n->tenant) || !name_is_entity(n->ns))
        return ERR_INVALID_NAME;
    return name_is_local(n->local) ? ERR_OK : ERR_INVALID_NAME;
}

static void complete(struct topic_name *n)
{
    size_t base_len;

    n->partition = partition_of(n->local, &base_len);
    n->full = mem_format("%s://%s/%s/%s", n->persistent ? "persistent" : "non-persistent",
                         n->tenant, n->ns, n->local);
    n->base = mem_string_n(n->full, strlen(n->full) - strlen(n->local) + base_len);
}

enum err topic_name_parse(const char *text, struct topic_name *out)
{
    *out = (struct topic_name){.partition = -1};
    enum err e = take_text(text, out);
    if (!e)
        e = check(out);
    if (e) {
        topic_name_drop(out);
        return e;
    }
    complete(out);
    return ERR_OK;
}

void topic_name_drop(struct topic_name *n)
{
    mem_free(n->full);
    mem_free(n->tenant);
    mem_free(n->ns);
    mem_free(n->local);
    mem_free(n->base);
    *n = (struct topic_name){.partition = -1};
}
