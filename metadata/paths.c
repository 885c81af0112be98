#include "metadata/paths.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/parse.h"
#include "metadata/names.h"

enum { SHORT_DIGITS = 10, LONG_DIGITS = 19 };

__attribute__((format(printf, 2, 3))) static enum err print(char into[META_KEY_MAX],
                                                            const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int n = vsnprintf(into, META_KEY_MAX, format, args);
    va_end(args);
    return n < 0 || n >= META_KEY_MAX ? ERR_TOO_BIG : ERR_OK;
}

/* Ids that do not fit 31 bits have a layout of their own: bookkeeper.md C.2. */
enum err path_ledger(int64_t id, char into[META_KEY_MAX])
{
    char d[24];

    if (id < 0)
        return ERR_INVALID_NAME;
    if (id < INT32_MAX) {
        snprintf(d, sizeof d, "%0*" PRId64, SHORT_DIGITS, id);
        return print(into, PATH_LEDGERS "/%.2s/%.4s/L%.4s", d, d + 2, d + 6);
    }
    snprintf(d, sizeof d, "%0*" PRId64, LONG_DIGITS, id);
    return print(into, PATH_LEDGERS "/%.3s/%.4s/%.4s/%.4s/L%.4s", d, d + 3, d + 7, d + 11, d + 15);
}

/* A ledger's key is the one that its digits make: nothing else under /ledgers is. */
enum err path_ledger_id(const char *key, int64_t *id)
{
    char digits[LONG_DIGITS + 1] = "", again[META_KEY_MAX];
    size_t n = 0;

    for (const char *s = key; *s; s++)
        if (*s >= '0' && *s <= '9') {
            if (n == LONG_DIGITS)
                return ERR_NOT_FOUND;
            digits[n++] = *s;
        }
    if (parse_i64(digits, id) || path_ledger(*id, again) || strcmp(key, again) != 0)
        return ERR_NOT_FOUND;
    return ERR_OK;
}

enum err path_mark(int64_t id, char into[META_KEY_MAX])
{
    if (id < 0)
        return ERR_INVALID_NAME;
    const unsigned part[] = {(unsigned)(id >> 48) & 0xffff, (unsigned)(id >> 32) & 0xffff,
                             (unsigned)(id >> 16) & 0xffff, (unsigned)id & 0xffff};
    return print(into, PATH_UNDERREPLICATED "%04x/%04x/%04x/%04x/urL%010" PRId64, part[0], part[1],
                 part[2], part[3], id);
}

enum err path_mark_lock(int64_t id, char into[META_KEY_MAX])
{
    if (id < 0)
        return ERR_INVALID_NAME;
    return print(into, PATH_MARK_LOCKS "urL%010" PRId64, id);
}

enum err path_mark_id(const char *key, int64_t *id)
{
    const char *name = strrchr(key, '/');
    char again[META_KEY_MAX];

    if (!name || strncmp(name, "/urL", 4) != 0 || parse_i64(name + 4, id))
        return ERR_NOT_FOUND;
    return path_mark(*id, again) || strcmp(key, again) != 0 ? ERR_NOT_FOUND : ERR_OK;
}

enum err path_leaving(const char *bookie_id, char into[META_KEY_MAX])
{
    if (!name_is_bookie(bookie_id))
        return ERR_INVALID_NAME;
    return print(into, PATH_LEAVING "%s", bookie_id);
}

enum err path_gc_beacon(const char *bookie_id, char into[META_KEY_MAX])
{
    if (!name_is_bookie(bookie_id))
        return ERR_INVALID_NAME;
    return print(into, PATH_GC_BEACONS "%s", bookie_id);
}

enum err path_bookie(const char *bookie_id, bool read_only, char into[META_KEY_MAX])
{
    if (!name_is_bookie(bookie_id))
        return ERR_INVALID_NAME;
    return print(into, "%s%s", read_only ? PATH_BOOKIES_READONLY : PATH_BOOKIES, bookie_id);
}

enum err path_cookie(const char *bookie_id, char into[META_KEY_MAX])
{
    if (!name_is_bookie(bookie_id))
        return ERR_INVALID_NAME;
    return print(into, PATH_COOKIES "%s", bookie_id);
}

enum err path_managed_ledger(const char *ml_name, char into[META_KEY_MAX])
{
    return print(into, "/managed-ledgers/%s", ml_name);
}

enum err path_cursor(const char *ml_name, const char *cursor, char into[META_KEY_MAX])
{
    if (!*cursor)
        return ERR_INVALID_NAME;
    char *encoded = name_encode(cursor);
    enum err e = print(into, "/managed-ledgers/%s/%s", ml_name, encoded);
    mem_free(encoded);
    return e;
}

enum err path_namespace(const char *tenant, const char *ns, char into[META_KEY_MAX])
{
    if (!name_is_entity(tenant) || !name_is_entity(ns))
        return ERR_INVALID_NAME;
    return print(into, PATH_POLICIES "%s/%s", tenant, ns);
}

enum err path_local_policies(const char *tenant, const char *ns, char into[META_KEY_MAX])
{
    if (!name_is_entity(tenant) || !name_is_entity(ns))
        return ERR_INVALID_NAME;
    return print(into, PATH_LOCAL_POLICIES "%s/%s", tenant, ns);
}

enum err path_tenant(const char *tenant, char into[META_KEY_MAX])
{
    if (!name_is_entity(tenant))
        return ERR_INVALID_NAME;
    return print(into, PATH_POLICIES "%s", tenant);
}

enum err path_cluster(const char *cluster, char into[META_KEY_MAX])
{
    if (!name_is_entity(cluster))
        return ERR_INVALID_NAME;
    return print(into, PATH_CLUSTERS "%s", cluster);
}

static const char *domain(const struct topic_name *n)
{
    return n->persistent ? "persistent" : "non-persistent";
}

enum err path_partitioned(const struct topic_name *base, char into[META_KEY_MAX])
{
    char *local = name_encode(strrchr(base->base, '/') + 1);
    enum err e =
        print(into, PATH_PARTITIONED "%s/%s/%s/%s", base->tenant, base->ns, domain(base), local);

    mem_free(local);
    return e;
}

enum err path_topics(const char *tenant, const char *ns, char into[META_KEY_MAX])
{
    if (!name_is_entity(tenant) || !name_is_entity(ns))
        return ERR_INVALID_NAME;
    return print(into, "/managed-ledgers/%s/%s/persistent/", tenant, ns);
}

enum err path_partitioned_topics(const char *tenant, const char *ns, char into[META_KEY_MAX])
{
    if (!name_is_entity(tenant) || !name_is_entity(ns))
        return ERR_INVALID_NAME;
    return print(into, PATH_PARTITIONED "%s/%s/persistent/", tenant, ns);
}

enum err path_fleeting_partitioned_topics(const char *tenant, const char *ns,
                                          char into[META_KEY_MAX])
{
    if (!name_is_entity(tenant) || !name_is_entity(ns))
        return ERR_INVALID_NAME;
    return print(into, PATH_PARTITIONED "%s/%s/non-persistent/", tenant, ns);
}

char *managed_ledger_name(const struct topic_name *n)
{
    char *local = name_encode(n->local);
    char *name = mem_format("%s/%s/%s/%s", n->tenant, n->ns, domain(n), local);

    mem_free(local);
    return name;
}
