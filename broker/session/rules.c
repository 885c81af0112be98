#include "broker/session/rules.h"

#define IN(state) (1u << SESSION_##state)
#define TYPE(t)   PULSAR__PROTO__BASE_COMMAND__TYPE__##t

/* clang-format off */
static const struct {
    uint32_t welcome;
    command_fn *handle;
} rules[] = {
    [TYPE(CONNECT)]                           = {IN(NEW),   on_connect},
    [TYPE(PING)]                              = {IN(READY), on_ping},
    [TYPE(PONG)]                              = {IN(READY), on_pong},
    [TYPE(LOOKUP)]                            = {IN(READY), on_lookup},
    [TYPE(PARTITIONED_METADATA)]              = {IN(READY), on_partitions},
    [TYPE(PRODUCER)]                          = {IN(READY), on_producer},
    [TYPE(SEND)]                              = {IN(READY), on_send},
    [TYPE(CLOSE_PRODUCER)]                    = {IN(READY), on_close_producer},
    [TYPE(SUBSCRIBE)]                         = {IN(READY), on_subscribe},
    [TYPE(FLOW)]                              = {IN(READY), on_flow},
    [TYPE(ACK)]                               = {IN(READY), on_ack},
    [TYPE(REDELIVER_UNACKNOWLEDGED_MESSAGES)] = {IN(READY), on_redeliver},
    [TYPE(GET_LAST_MESSAGE_ID)]               = {IN(READY), on_last_id},
    [TYPE(SEEK)]                              = {IN(READY), on_seek},
    [TYPE(UNSUBSCRIBE)]                       = {IN(READY), on_unsubscribe},
    [TYPE(CONSUMER_STATS)]                    = {IN(READY), on_consumer_stats},
    [TYPE(CLOSE_CONSUMER)]                    = {IN(READY), on_close_consumer},
    [TYPE(GET_TOPICS_OF_NAMESPACE)]           = {IN(READY), on_topics_of_namespace},
    [TYPE(WATCH_TOPIC_LIST)]                  = {IN(READY), on_watch_topics},
    [TYPE(WATCH_TOPIC_LIST_CLOSE)]            = {IN(READY), on_unwatch_topics},

    [TYPE(GET_SCHEMA)]                        = {IN(READY), on_refused},
    [TYPE(GET_OR_CREATE_SCHEMA)]              = {IN(READY), on_refused},
    [TYPE(NEW_TXN)]                           = {IN(READY), on_refused},
    [TYPE(ADD_PARTITION_TO_TXN)]              = {IN(READY), on_refused},
    [TYPE(ADD_SUBSCRIPTION_TO_TXN)]           = {IN(READY), on_refused},
    [TYPE(END_TXN)]                           = {IN(READY), on_refused},
    [TYPE(END_TXN_ON_PARTITION)]              = {IN(READY), on_refused},
    [TYPE(END_TXN_ON_SUBSCRIPTION)]           = {IN(READY), on_refused},
    [TYPE(TC_CLIENT_CONNECT_REQUEST)]         = {IN(READY), on_refused},
};
/* clang-format on */

enum err rules_find(int type, enum session_state state, command_fn **handle)
{
    if (type < 0 || (size_t)type >= sizeof(rules) / sizeof(rules[0]))
        return ERR_MALFORMED;
    if (!(rules[type].welcome & 1u << state))
        return ERR_MALFORMED;
    *handle = rules[type].handle;
    return ERR_OK;
}
