#include "metadata/init.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"
#include "metadata/ids.h"
#include "metadata/paths.h"
#include "metadata/wait.h"

enum { BUNDLES = 4 };

/* Idempotent: what is there stays as it is.  Takes value. */
static enum err put_if_absent(struct metadata *m, const char *key, struct slice value)
{
    enum err e = meta_put_wait(m, key, value, META_ABSENT);

    return e == ERR_BAD_VERSION ? ERR_OK : e;
}

/* Takes o. */
static enum err put_json(struct metadata *m, const char *key, struct json_object *o)
{
    const char *text =
        json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    enum err e = put_if_absent(m, key, slice_copy(text, strlen(text)));

    json_object_put(o);
    return e;
}

static void add_string(struct json_object *o, const char *key, const char *value)
{
    if (value)
        json_object_object_add(o, key, json_object_new_string(value));
}

static struct json_object *list_of(const char *one)
{
    struct json_object *list = json_object_new_array();

    json_object_array_add(list, json_object_new_string(one));
    return list;
}

static enum err put_instance_id(struct metadata *m)
{
    uint8_t b[16];
    char text[37];

    rng_bytes(b, sizeof b);
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    snprintf(text, sizeof text,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
    return put_if_absent(m, PATH_INSTANCE_ID, slice_copy(text, strlen(text)));
}

static enum err put_cluster(struct metadata *m, const char *cluster,
                            const struct cluster_urls *urls)
{
    struct json_object *o;
    char key[META_KEY_MAX];

    TRY(path_cluster(cluster, key));
    o = json_object_new_object();
    add_string(o, "serviceUrl", urls->web_service);
    add_string(o, "serviceUrlTls", urls->web_service_tls);
    add_string(o, "brokerServiceUrl", urls->broker_service);
    add_string(o, "brokerServiceUrlTls", urls->broker_service_tls);
    return put_json(m, key, o);
}

static enum err put_tenant(struct metadata *m, const char *tenant, const char *cluster)
{
    struct json_object *o;
    char key[META_KEY_MAX];

    TRY(path_tenant(tenant, key));
    o = json_object_new_object();
    json_object_object_add(o, "adminRoles", json_object_new_array());
    json_object_object_add(o, "allowedClusters", list_of(cluster));
    return put_json(m, key, o);
}

/* Equal shares of the 32-bit hash; the last boundary is closed. */
struct json_object *cluster_bundles(uint32_t n)
{
    struct json_object *bundles = json_object_new_object(), *list = json_object_new_array();
    uint64_t share = (UINT64_C(1) << 32) / n;
    char text[16];

    for (uint32_t i = 0; i <= n; i++) {
        uint32_t at = i < n ? (uint32_t)(i * share) : UINT32_MAX;
        snprintf(text, sizeof text, "0x%08" PRIx32, at);
        json_object_array_add(list, json_object_new_string(text));
    }
    json_object_object_add(bundles, "boundaries", list);
    json_object_object_add(bundles, "numBundles", json_object_new_int64(n));
    return bundles;
}

static struct json_object *policies_of(const char *cluster, uint32_t n)
{
    struct json_object *o = json_object_new_object(), *auth = json_object_new_object();

    json_object_object_add(auth, "namespace_auth", json_object_new_object());
    json_object_object_add(auth, "destination_auth", json_object_new_object());
    json_object_object_add(auth, "subscription_auth_roles", json_object_new_object());
    json_object_object_add(o, "auth_policies", auth);
    json_object_object_add(o, "replication_clusters", list_of(cluster));
    json_object_object_add(o, "bundles", cluster_bundles(n));
    json_object_object_add(o, "deleted", json_object_new_boolean(false));
    return o;
}

static enum err put_namespace(struct metadata *m, const char *tenant, const char *ns,
                              const char *cluster)
{
    char key[META_KEY_MAX];
    struct json_object *local;

    TRY(path_local_policies(tenant, ns, key));
    local = json_object_new_object();
    json_object_object_add(local, "bundles", cluster_bundles(BUNDLES));
    TRY(put_json(m, key, local));
    TRY(path_namespace(tenant, ns, key));
    return put_json(m, key, policies_of(cluster, BUNDLES));
}

/* The policies come last: who finds a namespace finds all that belongs to it. */
enum err cluster_init(struct metadata *m, const char *cluster, const struct cluster_urls *urls)
{
    TRY(put_instance_id(m));
    TRY(ledger_ids_claim(m));
    TRY(put_tenant(m, "public", cluster));
    TRY(put_tenant(m, "pulsar", cluster));
    TRY(put_namespace(m, "public", "default", cluster));
    TRY(put_namespace(m, "pulsar", "system", cluster));
    TRY(put_cluster(m, cluster, urls));
    log_event(LOG_INFO, "cluster.initialized", F_STR("cluster", cluster));
    return ERR_OK;
}

static enum err must_exist(struct metadata *m, const char *key)
{
    struct slice value = {0};
    enum err e = meta_get_wait(m, key, &value, NULL);

    slice_drop(&value);
    return e;
}

static enum err find_cluster(struct metadata *m, const char *cluster, struct slice *id)
{
    char key[META_KEY_MAX];

    TRY(path_cluster(cluster, key));
    TRY(must_exist(m, key));
    TRY(must_exist(m, PATH_LEDGER_COUNTER));
    return meta_get_wait(m, PATH_INSTANCE_ID, id, NULL);
}

enum err cluster_check(struct metadata *m, const char *cluster, char **instance_id)
{
    struct slice id = {0};
    enum err e = find_cluster(m, cluster, &id);

    if (e == ERR_NOT_FOUND) {
        char *run = mem_format("lgm init --cluster %s --metadata URL", cluster);
        log_event(LOG_ERROR, "cluster.not_initialized", F_STR("cluster", cluster),
                  F_STR("run", run));
        mem_free(run);
        return ERR_NOT_READY;
    }
    TRY(e);
    *instance_id = mem_string_n((const char *)id.base, id.len);
    slice_drop(&id);
    return ERR_OK;
}
