/* CONNECT, PING, PONG. */
#include <stdio.h>
#include <string.h>

#include "broker/broker.h"
#include "broker/metrics.h"
#include "broker/session/reply.h"
#include "broker/session/rules.h"
#include "common/log.h"

enum { CLIENT_VERSION_MAX = 255 };

static void reply_connected(struct session *s, int32_t version)
{
    Pulsar__Proto__CommandConnected ok = PULSAR__PROTO__COMMAND_CONNECTED__INIT;
    Pulsar__Proto__FeatureFlags flags = PULSAR__PROTO__FEATURE_FLAGS__INIT;

    flags.has_supports_get_partitioned_metadata_without_auto_creation = true;
    flags.supports_get_partitioned_metadata_without_auto_creation = true;
    flags.has_supports_topic_watchers = true;
    flags.supports_topic_watchers = session_env(s)->conf->evaluates_patterns;
    ok.server_version = "Pulsar Server (LGM " LGM_VERSION ")";
    ok.has_protocol_version = true;
    ok.protocol_version = version;
    ok.has_max_message_size = true;
    ok.max_message_size = (int32_t)session_env(s)->conf->max_message_size;
    ok.feature_flags = &flags;
    REPLY(base, CONNECTED, connected, ok);
    session_send(s, &base);
}

static bool is_one_too_many(const struct session *s)
{
    int64_t max = session_env(s)->conf->max_connections;
    return max > 0 && metric_get(&session_env(s)->metrics->connections) > max;
}

/* Clients built on the C++ one close the connection over it: clients.md 22. */
static bool knows_end(const Pulsar__Proto__CommandConnect *c, int32_t version)
{
    static const char cpp[] = "Pulsar-CPP";

    return version >= 9 && strncmp(c->client_version, cpp, sizeof(cpp) - 1) != 0;
}

/* What both sides speak; clients count from 0. */
static int32_t common_version(int32_t client)
{
    if (client < 0)
        return 0;
    return client < PROTOCOL_VERSION ? client : PROTOCOL_VERSION;
}

enum err on_connect(struct session *s, const struct command *c)
{
    const Pulsar__Proto__CommandConnect *connect = c->base->connect;
    int32_t version = connect->protocol_version;

    if (is_one_too_many(s)) {
        reply_error(s, REPLY_NO_REQUEST, err_to_pulsar(ERR_NOT_ALLOWED),
                    "the broker has as many connections as it may have");
        session_finish(s);
        return ERR_OK;
    }
    s->state = SESSION_READY;
    s->who.address = mem_format("/%s", conn_peer(s->conn));
    s->who.client =
        mem_string_n(connect->client_version, strnlen(connect->client_version, CLIENT_VERSION_MAX));
    s->hears_end = knows_end(connect, version);
    metric_add(&session_env(s)->metrics->connects, 1);
    log_event(LOG_DEBUG, "session.connected", F_STR("peer", conn_peer(s->conn)),
              F_STR("client", connect->client_version), F_I64("version", version));
    reply_connected(s, common_version(version));
    return ERR_OK;
}

enum err on_ping(struct session *s, const struct command *c)
{
    (void)c;
    reply_pong(s);
    return ERR_OK;
}

enum err on_pong(struct session *s, const struct command *c)
{
    (void)s, (void)c; /* any frame is a sign of life: it was noted */
    return ERR_OK;
}
