/* Messages that are peeked at: of each entry what its headers say, of a batch every message. */
#include <stdio.h>
#include <string.h>

#include "cli/admin_verbs.h"
#include "cli/command.h"
#include "cli/payload.h"
#include "common/mem.h"
#include "common/parse.h"
#include "proto/message.h"

enum { COUNT_MAX = 10000, ARENA = 64 * 1024 * 1024 };

static const char *header(const struct admin_bytes *b, const char *name)
{
    return json_object_get_string(json_object_object_get(b->headers, name));
}

static void add_header(json_object *o, const char *as, const struct admin_bytes *b,
                       const char *name)
{
    const char *value = header(b, name);

    if (value)
        json_object_object_add(o, as, json_object_new_string(value));
}

/* What all messages of an entry have in common; `at` below 0: there is but one. */
static json_object *described(const struct admin_bytes *b, int at)
{
    json_object *o = json_object_new_object();
    const char *id = header(b, "x-pulsar-message-id");
    char *full = mem_format(at < 0 ? "%s" : "%s:%d", id ? id : "?", at);

    json_object_object_add(o, "id", json_object_new_string(full));
    mem_free(full);
    add_header(o, "publishTime", b, "x-pulsar-publish-time");
    add_header(o, "producer", b, "x-pulsar-producer-name");
    return o;
}

static void print(const struct admin_call *c, json_object *o, struct view payload)
{
    payload_add(o, payload);
    if (c->json) {
        puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN |
                                                   JSON_C_TO_STRING_NOSLASHESCAPE));
    } else {
        json_object *text = json_object_object_get(o, "payload");
        if (!text)
            text = json_object_object_get(o, "payloadBase64");
        const char *when = json_object_get_string(json_object_object_get(o, "publishTime"));
        printf("%s  %s  %s\n", json_object_get_string(json_object_object_get(o, "id")),
               when ? when : "-", json_object_get_string(text));
    }
    json_object_put(o);
}

static void show_one(const struct admin_call *c, const struct admin_bytes *b)
{
    json_object *o = described(b, -1);
    const char *properties = header(b, "x-pulsar-property");

    add_header(o, "key", b, "x-pulsar-partition-key");
    add_header(o, "eventTime", b, "x-pulsar-event-time");
    json_object_object_add(o, "properties", properties ? json_tokener_parse(properties) : NULL);
    print(c, o, (struct view){b->base, b->len});
}

static json_object *of_batch(const struct admin_bytes *b, int at,
                             const Pulsar__Proto__SingleMessageMetadata *m)
{
    json_object *o = described(b, at), *properties = json_object_new_object();

    if (m->partition_key)
        json_object_object_add(o, "key", json_object_new_string(m->partition_key));
    for (size_t i = 0; i < m->n_properties; i++)
        json_object_object_add(properties, m->properties[i]->key,
                               json_object_new_string(m->properties[i]->value));
    json_object_object_add(o, "properties", properties);
    return o;
}

static enum err show_batch(const struct admin_call *c, const struct admin_bytes *b)
{
    struct arena *arena = arena_new(ARENA);
    struct view rest = {b->base, b->len}, payload;
    Pulsar__Proto__SingleMessageMetadata *one;
    enum err err = ERR_OK;

    for (int i = 0; !(err = batch_next(&rest, arena, &one, &payload)); i++)
        print(c, of_batch(b, i, one), payload);
    arena_drop(&arena);
    return err == ERR_END ? ERR_OK : err;
}

/* What is encrypted is shown as it is. */
static int show(const struct admin_call *c, const struct admin_bytes *b)
{
    const bool batch =
        header(b, "x-pulsar-num-batch-message") && !header(b, "x-pulsar-is-encrypted");
    enum err err = ERR_OK;

    if (batch)
        err = show_batch(c, b);
    else
        show_one(c, b);
    if (err)
        admin_say("%s: the batch cannot be read: %s", header(b, "x-pulsar-message-id"),
                  err_text(err));
    return err ? EXIT_FAILED : EXIT_DONE;
}

/* *more: there may be another. */
static int peek(const struct admin_call *c, const char *target, bool *more)
{
    struct admin_bytes b;
    const long status = admin_http_bytes(c, target, &b);
    int code = EXIT_FAILED;

    *more = status == 200;
    if (status == 200)
        code = show(c, &b);
    else if (status == 404 && strstr((const char *)b.base, "Message not found"))
        code = EXIT_DONE;
    else if (status > 0)
        admin_complain(c, status, (const char *)b.base);
    admin_bytes_drop(&b);
    return code;
}

int admin_peek(const struct admin_call *c)
{
    const char *text = admin_option(c, "count", strlen("count"));
    uint64_t count = 1;
    bool more = true;
    int code = EXIT_DONE;

    if (text && (parse_u64(text, &count) || count < 1 || count > COUNT_MAX)) {
        admin_say("--count is a number from 1 to %d", COUNT_MAX);
        return EXIT_USAGE;
    }
    char *front = admin_target(c);
    if (!front)
        return EXIT_USAGE;
    for (uint64_t i = 1; more && !code && i <= count; i++) {
        char *target = mem_format("%s%llu", front, (unsigned long long)i);
        code = peek(c, target, &more);
        mem_free(target);
    }
    mem_free(front);
    return code;
}
