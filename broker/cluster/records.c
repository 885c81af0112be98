#include "broker/cluster/records.h"

#include <json-c/json.h>
#include <limits.h>
#include <string.h>

#include "common/mem.h"

/* ---- JSON ---- */

static void add(json_object *o, const char *key, const char *value)
{
    json_object_object_add(o, key, json_object_new_string(value));
}

static void add_url(json_object *o, const char *key, const char *url)
{
    json_object_object_add(o, key, *url ? json_object_new_string(url) : NULL);
}

/* Takes o. */
static struct slice text_of(json_object *o)
{
    const char *text =
        json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    struct slice s = slice_copy(text, strlen(text));

    json_object_put(o);
    return s;
}

static json_object *object_of(struct view text)
{
    if (text.len == 0 || text.len > INT_MAX)
        return NULL;
    struct json_tokener *t = json_tokener_new();
    json_object *o = json_tokener_parse_ex(t, (const char *)text.base, (int)text.len);
    json_tokener_free(t);
    if (json_object_is_type(o, json_type_object))
        return o;
    json_object_put(o);
    return NULL;
}

/* Gives; "" for what is not there, NULL for what is no text. */
static char *string_in(json_object *o, const char *key)
{
    json_object *v;

    if (!json_object_object_get_ex(o, key, &v) || !v)
        return mem_string("");
    return json_object_is_type(v, json_type_string) ? mem_string(json_object_get_string(v)) : NULL;
}

/* ---- a bundle's owner ---- */

struct slice owner_record_write(const char *owner, const char *nonce)
{
    json_object *o = json_object_new_object();

    add(o, "owner", owner);
    add(o, "nonce", nonce);
    return text_of(o);
}

enum err owner_record_read(struct view text, struct owner_record *out)
{
    json_object *o = object_of(text);

    if (!o)
        return ERR_MALFORMED;
    *out = (struct owner_record){.owner = string_in(o, "owner"), .nonce = string_in(o, "nonce")};
    json_object_put(o);
    if (out->owner && out->nonce)
        return ERR_OK;
    owner_record_drop(out);
    return ERR_MALFORMED;
}

void owner_record_drop(struct owner_record *r)
{
    mem_free(r->owner);
    mem_free(r->nonce);
    *r = (struct owner_record){0};
}

/* ---- a broker's registration ---- */

struct slice broker_record_write(const struct broker_urls *urls, const char *nonce,
                                 uint64_t started_ms)
{
    json_object *o = json_object_new_object();

    add_url(o, "webServiceUrl", urls->web);
    add_url(o, "webServiceUrlTls", urls->web_tls);
    add_url(o, "pulsarServiceUrl", urls->service);
    add_url(o, "pulsarServiceUrlTls", urls->service_tls);
    json_object_object_add(o, "advertisedListeners", json_object_new_object());
    json_object_object_add(o, "protocols", json_object_new_object());
    json_object_object_add(o, "persistentTopicsEnabled", json_object_new_boolean(true));
    json_object_object_add(o, "nonPersistentTopicsEnabled", json_object_new_boolean(true));
    json_object_object_add(o, "startTimestamp", json_object_new_int64((int64_t)started_ms));
    add(o, "brokerVersion", LGM_VERSION);
    add(o, "nonce", nonce);
    return text_of(o);
}

enum err broker_record_read(struct view text, struct broker_record *out)
{
    json_object *o = object_of(text);

    if (!o)
        return ERR_MALFORMED;
    *out = (struct broker_record){
        .nonce = string_in(o, "nonce"),
        .service = string_in(o, "pulsarServiceUrl"),
        .service_tls = string_in(o, "pulsarServiceUrlTls"),
        .web = string_in(o, "webServiceUrl"),
        .web_tls = string_in(o, "webServiceUrlTls"),
    };
    json_object_put(o);
    if (out->nonce && *out->nonce && out->service && out->service_tls && out->web && out->web_tls)
        return ERR_OK;
    broker_record_drop(out);
    return ERR_MALFORMED;
}

void broker_record_drop(struct broker_record *r)
{
    mem_free(r->nonce);
    mem_free(r->service);
    mem_free(r->service_tls);
    mem_free(r->web);
    mem_free(r->web_tls);
    *r = (struct broker_record){0};
}
