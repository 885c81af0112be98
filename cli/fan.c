#include "cli/fan.h"

#include "cli/command.h"
#include "common/mem.h"

static void know(struct fan *f, unsigned partitions)
{
    f->n = partitions ? partitions : 1;
    f->topics = mem_alloc(f->n * sizeof(char *));
    if (partitions == 0)
        f->topics[0] = mem_string(f->asked);
    for (unsigned i = 0; i < partitions; i++)
        f->topics[i] = mem_format("%s-partition-%u", f->asked, i);
    f->known(f->ctx);
}

static void answered(void *ctx, enum err err, const char *text, unsigned partitions)
{
    struct fan *f = ctx;

    if (f->dropped)
        return;
    if (err) {
        cli_say(f->cli, "%s", text ? text : err_text(err));
        cli_end(f->cli, EXIT_FAILED);
        return;
    }
    know(f, partitions);
}

void fan_open(struct fan *f, struct cli *cli, const char *topic, void (*known)(void *ctx),
              void *ctx)
{
    f->cli = cli;
    f->asked = topic;
    f->known = known;
    f->ctx = ctx;
    client_partitions(cli->client, topic, answered, f);
}

void fan_drop(struct fan *f)
{
    for (unsigned i = 0; i < f->n; i++)
        mem_free(f->topics[i]);
    mem_free(f->topics);
    f->topics = NULL;
    f->n = 0;
    f->dropped = true;
}

/* The bytes that follow the first of a character, by how it begins. */
static unsigned followers(uint8_t first)
{
    return first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
}

/* One character of UTF-8; moves on behind it. */
static uint32_t next_char(const char **at)
{
    static const uint8_t front[] = {0x7f, 0x1f, 0x0f, 0x07};
    const uint8_t first = (uint8_t) * (*at)++;
    const unsigned more = followers(first);
    uint32_t c = first & front[more];

    for (unsigned i = 0; i < more && ((uint8_t) * *at & 0xc0) == 0x80; i++)
        c = c << 6 | ((uint8_t) * (*at)++ & 0x3f);
    return c;
}

/* Over its UTF-16, which Java's strings are. */
uint32_t fan_hash(const char *key)
{
    uint32_t hash = 0;

    while (*key) {
        const uint32_t c = next_char(&key);
        if (c >= 0x10000) {
            hash = 31 * hash + (0xd800 + ((c - 0x10000) >> 10));
            hash = 31 * hash + (0xdc00 + ((c - 0x10000) & 0x3ff));
        } else {
            hash = 31 * hash + c;
        }
    }
    return hash & 0x7fffffff;
}

unsigned fan_place(struct fan *f, const char *key)
{
    return key ? fan_hash(key) % f->n : f->turn++ % f->n;
}
