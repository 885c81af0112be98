/* bookie.h - a bookie: stores ledgers, and answers nothing before it is durable.
 *
 *   frame -> handlers (the ledger's loop) -> write cache + journal queue
 *                     journal thread: one group, one pwritev, one fdatasync -> replies
 *                     flush thread: frozen cache -> entry log -> index -> checkpoint
 *
 * main.c and `lgm standalone` both start it through here.
 *
 * Threads: start and stop from a thread that is no loop's.
 */
#ifndef BOOKIE_BOOKIE_H
#define BOOKIE_BOOKIE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/config.h"
#include "common/disk.h"
#include "common/err.h"
#include "common/loop.h"
#include "common/metric.h"

struct bookie;
struct directories;
struct gc;
struct memory_guard;
struct metadata;
struct storage;

/* From bookie/config.def; upstream key names (bookkeeper.conf). */
struct bookie_conf {
#define CONFIG_MEMBER_INT                                   int64_t
#define CONFIG_MEMBER_BOOL                                  bool
#define CONFIG_MEMBER_DOUBLE                                double
#define CONFIG_MEMBER_STRING                                const char *
#define X(name, member, type, preset, min, max, when, what) CONFIG_MEMBER_##type member;
#include "bookie/config.def"
#undef X
};
extern const struct config_table bookie_config_table;

/* The cluster must have been initialized (metadata/init.h): ERR_NOT_READY otherwise.
 * ERR_BAD_CONFIG, ERR_IO, ERR_EXISTS (another process uses a directory), ERR_NOT_ALLOWED (a
 * cookie that does not match), each with a log event that says what and where.  When it returns
 * ERR_OK the journal was replayed, the port is open and the bookie is registered.  conf, meta,
 * loops and disk outlive it. */
MUST_CHECK enum err bookie_start(struct bookie **out, const struct bookie_conf *conf,
                                 struct metadata *meta, struct loops *loops, struct disk *disk);
/* In a process whose memory somebody else looks after: its caches go by that one's level, until it
 * stops, which is before bookie_stop(). */
void bookie_follow(struct bookie *b, struct memory_guard *g);
void bookie_stop(struct bookie **b);             /* flushes, unregisters, joins its threads */
const char *bookie_name(const struct bookie *b); /* its bookie id */
uint16_t bookie_port(const struct bookie *b);
bool bookie_is_writable(const struct bookie *b);
MUST_CHECK enum err bookie_space(const struct bookie *b, uint64_t *free_bytes, uint64_t *total);
/* The next three on loops->at[0].  by_hand: read-only until it is taken back or a restart. */
bool bookie_is_registered(const struct bookie *b);
bool bookie_takes_recovery(const struct bookie *b); /* its adds, even when read-only */
void bookie_set_read_only(struct bookie *b, bool by_hand);
struct gc *bookie_gc(struct bookie *b); /* borrowed: gc.h */
/* For the HTTP of the same process; borrowed as long as it runs. */
struct storage *bookie_storage(struct bookie *b);
const struct directories *bookie_directories(const struct bookie *b);
void bookie_render_metrics(struct bookie *b, struct text *t);

#endif
