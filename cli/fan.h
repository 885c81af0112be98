/* fan.h - a topic, or all partitions of one: producers that take turns, consumers that are one.
 *
 *   fan_open -> how many partitions? -> known(ctx) -- every_us: more by now? --> grew(ctx, from)
 *   fan_place(key) -> whose turn it is, or whose key
 *
 * Pulsar's own clients spread alike: messages in turn, a key always to the partition that its hash
 * says (that of Java's strings, which is their default).
 *
 * Memory:  lives until fan_drop(), which forgets what is asked; topics stay as long.
 * Threads: the client's loop.
 */
#ifndef CLI_FAN_H
#define CLI_FAN_H

#include "cli/session.h"

struct fan {
    struct cli *cli;
    /* The topics are known: open what you want of each.  Not called when nobody knows them: then
     * that is said, and the command ends. */
    void (*known)(void *ctx);
    void (*grew)(void *ctx, unsigned from); /* those from there on are new */
    void *ctx;
    uint64_t every_us; /* how often it is looked whether there are more; 0: never */
    unsigned n;        /* topics; 0: not known yet */
    char **topics;
    const char *asked; /* private, as the rest */
    unsigned partitions, turn;
    struct timer look;
    bool dropped;
};

#define FAN_HELP \
    "      --partitions-every SECONDS  looks so often whether the topic has more of them (60)\n"
bool fan_take_every(struct fan *f, const char *text); /* false: it is no number of seconds */

enum { FAN_EVERY_S = 60 }; /* as Pulsar's own clients look */

/* f is zeroed, but for grew and every_us; `topic` outlives it. */
void fan_open(struct fan *f, struct cli *cli, const char *topic, void (*known)(void *ctx),
              void *ctx);
void fan_drop(struct fan *f);
/* The partition of a key (NULL: the next in turn). */
unsigned fan_place(struct fan *f, const char *key);
uint32_t fan_hash(const char *key); /* as Java hashes its strings */

#endif
