#include "broker/session/reply.h"

#define CODE(c) PULSAR__PROTO__SERVER_ERROR__##c

int reply_code_open(enum err err)
{
    switch (err) {
    case ERR_BUSY:   /* TooManyRequests is fatal to the caller: it may try again */
    case ERR_EXISTS: /* a race that the next try does not lose */
        return CODE(ServiceNotReady);
    case ERR_CHECKSUM: /* of what is stored, not of what was sent */
    case ERR_MALFORMED:
        return CODE(PersistenceError);
    default:
        return err_to_pulsar(err);
    }
}

int reply_code_lookup(enum err err)
{
    switch (err) {
    case ERR_TOPIC_NOT_FOUND:
    case ERR_INVALID_NAME:
    case ERR_NOT_ALLOWED:
    case ERR_FORBIDDEN:
    case ERR_BUSY:
        return err_to_pulsar(err);
    default: /* ServiceNotReady would close the client's whole connection */
        return CODE(MetadataError);
    }
}

void reply_error(struct session *s, uint64_t request, int code, const char *why)
{
    Pulsar__Proto__CommandError e = PULSAR__PROTO__COMMAND_ERROR__INIT;

    e.request_id = request;
    e.error = (Pulsar__Proto__ServerError)code;
    e.message = (char *)(uintptr_t)why;
    REPLY(base, ERROR, error, e);
    session_send(s, &base);
}

void reply_success(struct session *s, uint64_t request)
{
    Pulsar__Proto__CommandSuccess ok = PULSAR__PROTO__COMMAND_SUCCESS__INIT;

    ok.request_id = request;
    REPLY(base, SUCCESS, success, ok);
    session_send(s, &base);
}

void reply_ping(struct session *s)
{
    Pulsar__Proto__CommandPing ping = PULSAR__PROTO__COMMAND_PING__INIT;

    REPLY(base, PING, ping, ping);
    session_send(s, &base);
}

void reply_pong(struct session *s)
{
    Pulsar__Proto__CommandPong pong = PULSAR__PROTO__COMMAND_PONG__INIT;

    REPLY(base, PONG, pong, pong);
    session_send(s, &base);
}
