/* rules.h - which command is welcome in which state, and who takes it.
 *
 * A type that only brokers send, or nobody, is malformed.
 */
#ifndef BROKER_SESSION_RULES_H
#define BROKER_SESSION_RULES_H

#include "broker/session/session.h"

/* ERR_MALFORMED and the like close the connection; what a client may get wrong is answered. */
typedef enum err command_fn(struct session *s, const struct command *c);

command_fn on_connect, on_ping, on_pong;
command_fn on_lookup, on_partitions;
command_fn on_producer, on_close_producer, on_send;
command_fn on_subscribe, on_close_consumer, on_unsubscribe;
command_fn on_flow, on_ack, on_redeliver, on_last_id, on_seek, on_consumer_stats;
command_fn on_topics_of_namespace, on_watch_topics, on_unwatch_topics;
command_fn on_refused;

/* ERR_MALFORMED: not welcome now, or never. */
MUST_CHECK enum err rules_find(int type, enum session_state state, command_fn **handle);

#endif
