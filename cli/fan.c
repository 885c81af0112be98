#include "cli/fan.h"

#include "cli/command.h"
#include "common/mem.h"
#include "common/parse.h"

static void look_later(struct fan *f)
{
    if (f->every_us > 0 && f->partitions > 0)
        loop_after(f->cli->loop, &f->look, f->every_us);
}

static void name_partitions(struct fan *f, unsigned partitions)
{
    f->topics = mem_resize(f->topics, partitions * sizeof(char *));
    for (; f->n < partitions; f->n++)
        f->topics[f->n] = mem_format("%s-partition-%u", f->asked, f->n);
    f->partitions = partitions;
}

static void know(struct fan *f, unsigned partitions)
{
    if (partitions > 0) {
        name_partitions(f, partitions);
    } else {
        f->topics = mem_alloc(sizeof(char *));
        f->topics[f->n++] = mem_string(f->asked);
    }
    look_later(f);
    f->known(f->ctx);
}

/* ---- whether it has grown ---- */

/* They never become fewer; who does not know at the moment is asked again. */
static void looked(void *ctx, enum err err, const char *text, unsigned partitions)
{
    struct fan *f = ctx;
    const unsigned before = f->n;

    (void)text;
    if (f->dropped)
        return;
    look_later(f);
    if (err || partitions <= before)
        return;
    name_partitions(f, partitions);
    f->grew(f->ctx, before);
}

static void look(struct timer *t)
{
    struct fan *f = container_of(t, struct fan, look);

    client_partitions(f->cli->client, f->asked, looked, f);
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

bool fan_take_every(struct fan *f, const char *text)
{
    double seconds;

    if (parse_double(text, &seconds) || seconds <= 0)
        return false;
    f->every_us = (uint64_t)(seconds * 1e6);
    return true;
}

void fan_open(struct fan *f, struct cli *cli, const char *topic, void (*known)(void *ctx),
              void *ctx)
{
    f->cli = cli;
    f->asked = topic;
    f->known = known;
    f->ctx = ctx;
    f->look.run = look;
    client_partitions(cli->client, topic, answered, f);
}

void fan_drop(struct fan *f)
{
    if (f->cli)
        loop_cancel(f->cli->loop, &f->look);
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
