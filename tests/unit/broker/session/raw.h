/* raw.h - a client of the Pulsar protocol that sends what it is told, right or wrong, and waits. */
#ifndef TESTS_UNIT_BROKER_SESSION_RAW_H
#define TESTS_UNIT_BROKER_SESSION_RAW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/buf.h"
#include "proto/command.h"
#include "proto/frame.h"

struct raw {
    int fd;
    struct arena *arena; /* of the last frame read */
    uint8_t *bytes;
    struct frame frame;
    const Pulsar__Proto__BaseCommand *got;
    bool silent; /* does not answer PING by itself */
};

typedef Pulsar__Proto__BaseCommand raw_command;

int raw_socket(uint16_t port);          /* gives; 10 s to read */
struct raw *raw_dial(uint16_t port);    /* gives; nothing sent */
struct raw *raw_connect(uint16_t port); /* gives; CONNECTED */
void raw_drop(struct raw **r);

void raw_write(struct raw *r, const void *bytes, size_t len);
void raw_put(struct raw *r, const raw_command *c);
void raw_put_body(struct raw *r, const raw_command *c, struct slice body); /* takes body */
/* The next frame, PINGs answered and left out unless silent; fails the test after 10 s. */
const raw_command *raw_get(struct raw *r);
/* Of this type, or the test fails. */
const raw_command *raw_expect(struct raw *r, int type);
void raw_expect_error(struct raw *r, uint64_t request, int code);
void raw_expect_success(struct raw *r, uint64_t request);
void raw_expect_closed(struct raw *r);  /* what still comes is passed over */
void raw_expect_nothing(struct raw *r); /* PING is answered by PONG, and by nothing before it */

/* ---- commands that most tests need ---- */
void raw_lookup(struct raw *r, uint64_t request, const char *topic);
void raw_partitions(struct raw *r, uint64_t request, const char *topic, bool create);
void raw_producer(struct raw *r, uint64_t id, uint64_t request, const char *topic,
                  const char *name);
void raw_producer_ready(struct raw *r, uint64_t id, const char *topic); /* and waits */
struct slice raw_body(const char *text, uint64_t sequence, int batch);  /* gives */
void raw_send(struct raw *r, uint64_t producer, uint64_t sequence, const char *text);
void raw_publish(struct raw *r, uint64_t producer, uint64_t sequence, const char *text);
void raw_receipt(struct raw *r, uint64_t producer, uint64_t sequence);
void raw_subscribe(struct raw *r, uint64_t id, uint64_t request, const char *topic,
                   const char *subscription);
void raw_subscribed(struct raw *r, uint64_t id, const char *topic, const char *subscription);
void raw_flow(struct raw *r, uint64_t consumer, uint32_t permits);
/* The next MESSAGE, and that its payload is this. */
Pulsar__Proto__MessageIdData raw_message(struct raw *r, const char *text);
/* Waits for the answer; ids of one entry each, or one id with upto. */
void raw_ack(struct raw *r, uint64_t consumer, Pulsar__Proto__MessageIdData id, bool upto);
void raw_close_consumer(struct raw *r, uint64_t id, uint64_t request);
void raw_close_producer(struct raw *r, uint64_t id, uint64_t request);

#define RAW(base_, TYPE_, member_, Struct_, INIT_, sub_)            \
    Pulsar__Proto__##Struct_ sub_ = PULSAR__PROTO__##INIT_##__INIT; \
    raw_command base_ = PULSAR__PROTO__BASE_COMMAND__INIT;          \
    base_.type = PULSAR__PROTO__BASE_COMMAND__TYPE__##TYPE_;        \
    base_.member_ = &sub_

#define RAW_TYPE(t) PULSAR__PROTO__BASE_COMMAND__TYPE__##t

#endif
