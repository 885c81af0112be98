/* fan.h - a topic, or all partitions of one: producers that take turns, consumers that are one.
 *
 *   fan_open -> how many partitions? -> open(ctx, "TOPIC-partition-0") .. -> opened()
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
    void *ctx;
    unsigned n; /* topics; 0: not known yet */
    char **topics;
    const char *asked; /* private, as the rest */
    unsigned turn;
    bool dropped;
};

/* f is zeroed; `topic` outlives it. */
void fan_open(struct fan *f, struct cli *cli, const char *topic, void (*known)(void *ctx),
              void *ctx);
void fan_drop(struct fan *f);
/* The partition of a key (NULL: the next in turn). */
unsigned fan_place(struct fan *f, const char *key);
uint32_t fan_hash(const char *key); /* as Java hashes its strings */

#endif
