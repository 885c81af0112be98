/* reply.h - what a session answers.
 *
 * The error code depends on the command as well as on the failure: what is "busy" for one
 * would close a client's whole connection as the answer to a lookup (clients.md 2, 4, 5).
 */
#ifndef BROKER_SESSION_REPLY_H
#define BROKER_SESSION_REPLY_H

#include "broker/session/session.h"

/* A BaseCommand with one of its sub-messages: both on the caller's stack. */
#define REPLY(base_, TYPE_, member_, sub_)                                \
    Pulsar__Proto__BaseCommand base_ = PULSAR__PROTO__BASE_COMMAND__INIT; \
    base_.type = PULSAR__PROTO__BASE_COMMAND__TYPE__##TYPE_;              \
    base_.member_ = &(sub_)

/* ServerError numbers. */
int reply_code_open(enum err err);   /* to PRODUCER, SUBSCRIBE and what is asked of them */
int reply_code_lookup(enum err err); /* to LOOKUP, PARTITIONED_METADATA */

#define REPLY_NO_REQUEST UINT64_MAX

void reply_error(struct session *s, uint64_t request, int code, const char *why);
void reply_success(struct session *s, uint64_t request);
void reply_ping(struct session *s);
void reply_pong(struct session *s);

#endif
