#include "broker/policy/ns_policies.h"

#include <json-c/json.h>
#include <string.h>

enum { QUORUM_MAX = 16, JSON_DEPTH = 32 };

static json_object *parse(struct view json)
{
    json_tokener *t = json_tokener_new_ex(JSON_DEPTH);
    json_object *o = json_tokener_parse_ex(t, (const char *)json.base, (int)json.len);

    json_tokener_free(t);
    if (o && json_object_is_type(o, json_type_object))
        return o;
    json_object_put(o);
    return NULL;
}

static json_object *object_in(json_object *o, const char *key)
{
    json_object *in = json_object_object_get(o, key);

    return in && json_object_is_type(in, json_type_object) ? in : NULL;
}

static int64_t number_in(json_object *o, const char *key, int64_t otherwise)
{
    json_object *in = json_object_object_get(o, key);

    return in && json_object_is_type(in, json_type_int) ? json_object_get_int64(in) : otherwise;
}

static bool says_true(json_object *o, const char *key)
{
    json_object *in = json_object_object_get(o, key);

    return in && json_object_is_type(in, json_type_boolean) && json_object_get_boolean(in);
}

static void read_creation(json_object *o, struct ns_policies *out)
{
    json_object *type = json_object_object_get(o, "topicType");
    bool partitioned = type && strcasecmp(json_object_get_string(type), "partitioned") == 0;
    int64_t n = number_in(o, "defaultNumPartitions", 1);

    out->creation_set = true;
    out->creation.allowed = says_true(o, "allowAutoTopicCreation");
    out->creation.partitions = !partitioned ? 0 : n >= 1 && n <= INT32_MAX ? (int32_t)n : 1;
}

static void read_retention(json_object *o, struct ns_policies *out)
{
    out->retention_set = true;
    out->retention_minutes = number_in(o, "retentionTimeInMinutes", 0);
    out->retention_mb = number_in(o, "retentionSizeInMB", 0);
}

/* Somebody else's numbers: such as cannot be are left aside. */
static void read_persistence(json_object *o, struct ns_policies *out)
{
    int64_t e = number_in(o, "bookkeeperEnsemble", 0);
    int64_t w = number_in(o, "bookkeeperWriteQuorum", 0);
    int64_t a = number_in(o, "bookkeeperAckQuorum", 0);

    if (a < 1 || a > w || w > e || e > QUORUM_MAX)
        return;
    out->persistence_set = true;
    out->ensemble = (uint32_t)e;
    out->write_quorum = (uint32_t)w;
    out->ack_quorum = (uint32_t)a;
}

/* Below zero: older Pulsars' word for "as the broker is set". */
static void read_limits(json_object *o, struct ns_policies *out)
{
    static const char *const fields[NS_LIMITS] = {
        [NS_PRODUCERS] = "max_producers_per_topic",
        [NS_CONSUMERS] = "max_consumers_per_topic",
        [NS_SUBSCRIPTIONS] = "max_subscriptions_per_topic",
        [NS_SUBSCRIPTION_CONSUMERS] = "max_consumers_per_subscription",
        [NS_UNACKED] = "max_unacked_messages_per_consumer",
        [NS_SUBSCRIPTION_UNACKED] = "max_unacked_messages_per_subscription"};

    for (unsigned i = 0; i < NS_LIMITS; i++) {
        const int64_t n = number_in(o, fields[i], -1);
        out->limit[i].set = n >= 0;
        out->limit[i].most = n >= 0 ? n : 0;
    }
}

unsigned ns_type_bit(const char *type, size_t len)
{
    static const char *const types[] = {"Exclusive", "Shared", "Failover", "Key_Shared"};

    for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strlen(types[i]) == len && strncmp(types[i], type, len) == 0)
            return 1u << i;
    return 0;
}

unsigned ns_type_bits(const char *list)
{
    unsigned bits = 0;

    for (; *list; list += *list == ',') {
        const size_t len = strcspn(list, ",");
        const unsigned bit = ns_type_bit(list, len);
        if (!bit)
            return ~0u;
        bits |= bit;
        list += len;
    }
    return bits;
}

static void read_types(json_object *list, struct ns_policies *out)
{
    if (!json_object_is_type(list, json_type_array))
        return;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *one = json_object_array_get_idx(list, i);
        if (json_object_is_type(one, json_type_string))
            out->types |=
                ns_type_bit(json_object_get_string(one), (size_t)json_object_get_string_len(one));
    }
}

static void read_subscription_creation(json_object *o, struct ns_policies *out)
{
    out->subscription_creation_set = true;
    out->subscription_creation = says_true(o, "allowAutoSubscriptionCreation");
}

enum err ns_policies_read(struct view json, struct ns_policies *out)
{
    json_object *o = parse(json), *in;

    *out = (struct ns_policies){0};
    if (!o)
        return ERR_MALFORMED;
    out->exists = !says_true(o, "deleted");
    if ((in = object_in(o, "autoTopicCreationOverride")))
        read_creation(in, out);
    if ((in = object_in(o, "retention_policies")))
        read_retention(in, out);
    if ((in = object_in(o, "persistence")))
        read_persistence(in, out);
    if ((in = object_in(o, "autoSubscriptionCreationOverride")))
        read_subscription_creation(in, out);
    read_limits(o, out);
    read_types(json_object_object_get(o, "subscription_types_enabled"), out);
    json_object_put(o);
    return ERR_OK;
}

enum err partitioned_topic_read(struct view json, struct partitioned_topic *out)
{
    json_object *o = parse(json);

    *out = (struct partitioned_topic){0};
    if (!o)
        return ERR_MALFORMED;
    int64_t n = number_in(o, "partitions", 0);
    out->partitions = n > 0 && n <= INT32_MAX ? (int32_t)n : 0;
    out->deleted = says_true(o, "deleted");
    json_object_put(o);
    return ERR_OK;
}
