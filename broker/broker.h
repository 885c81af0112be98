/* broker.h - a broker: owns topics, keeps nothing on disk.
 *
 *   conn -> session -> topic -> managed ledger -> bookies
 *                        |
 *                        +-> dispatch -> consumers -> conn
 *
 * main.c and `lgm standalone` both start it through here.
 *
 * Threads: start and stop from a thread that is no loop's.
 */
#ifndef BROKER_BROKER_H
#define BROKER_BROKER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/config.h"
#include "common/err.h"
#include "common/loop.h"

struct authorizer;
struct broker;
struct memory_guard;
struct metadata;

/* From broker/config.def; upstream key names (broker.conf). */
struct broker_conf {
#define CONFIG_MEMBER_INT                                   int64_t
#define CONFIG_MEMBER_PORT                                  int64_t /* CONFIG_NO_PORT: none */
#define CONFIG_MEMBER_BOOL                                  bool
#define CONFIG_MEMBER_DOUBLE                                double
#define CONFIG_MEMBER_STRING                                const char *
#define X(name, member, type, preset, min, max, when, what) CONFIG_MEMBER_##type member;
#include "broker/config.def"
#undef X
};
extern const struct config_table broker_config_table;

/* ERR_BAD_CONFIG, ERR_IO (a port in use), ERR_NOT_READY (the cluster was not initialized), each
 * with a log event that says what and where.  When it returns ERR_OK clients are served.  conf,
 * meta and loops outlive it. */
MUST_CHECK enum err broker_start(struct broker **out, const struct broker_conf *conf,
                                 struct metadata *meta, struct loops *loops);
/* Who may do what is for `authorizer` to say (auth/authorize.h), which outlives it too; else
 * everybody may do everything. */
MUST_CHECK enum err broker_start_guarded(struct broker **out, const struct broker_conf *conf,
                                         const struct authorizer *authorizer, struct metadata *meta,
                                         struct loops *loops);
/* Takes no new work, closes every topic (cursors are written, ledgers sealed), tells clients to
 * look elsewhere, closes connections. */
void broker_stop(struct broker **b);
/* Where clients come in; 0: not open. */
struct broker_ports {
    uint16_t plain, tls, web, web_tls;
};
/* How much memory is left; others in the process may listen to it until broker_stop(). */
struct memory_guard *broker_memory(struct broker *b);
struct broker_ports broker_ports(const struct broker *b);
uint16_t broker_port(const struct broker *b);
uint16_t broker_web_port(const struct broker *b);

#endif
