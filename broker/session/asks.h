/* asks.h - what a session asks of its consumers, and what it delivers for them. */
#ifndef BROKER_SESSION_ASKS_H
#define BROKER_SESSION_ASKS_H

#include "broker/session/session.h"

void session_forget_consumer(struct session *s, struct handle *h);
void session_answered(struct topic_consumer *c, struct consumer_ask *a);
void session_reported(struct session *s, const struct topic_consumer *c,
                      const struct consumer_ask *a);
/* Of a consumer that is open; NULL: there is none of this id. */
struct topic_consumer *session_consumer_ready(struct session *s, uint64_t id);
struct consumer_ask *session_ask_new(enum consumer_ask_kind kind, size_t positions); /* gives */
void session_sought(struct session *s, const struct consumer_ask *a);                /* an answer */
void session_deliver(struct topic_consumer *c, struct delivery *d);

#endif
