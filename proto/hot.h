/* hot.h - the commands that come with every message, read and written by hand.
 *
 *   SEND, SEND_RECEIPT, MESSAGE, ACK, FLOW as clients and brokers really write them
 *
 * protobuf-c walks all seventy fields of a BaseCommand, twice to write one and with a search to
 * read one: a third of what a small message costs.  Here the few fields are taken as they come.
 * Whatever is unusual - an unknown field, fields twice, properties, long ack sets - is left to
 * protobuf-c, which also says what is malformed; for the rest both must agree, and
 * tests/fuzz/command_fuzz.c compares them.  For command.c only.
 */
#ifndef PROTO_HOT_H
#define PROTO_HOT_H

#include <stdbool.h>

#include "common/arena.h"
#include "common/buf.h"
#include "proto/pulsar.pb-c.h"

/* What command_read() gives, or false: let protobuf-c do it.  *out lives in the arena. */
bool hot_read(struct view bytes, struct arena *arena, Pulsar__Proto__BaseCommand **out);

enum { HOT_MAX = 160 };
/* Bytes of the command, written to `into`; 0: let protobuf-c do it. */
size_t hot_write(const Pulsar__Proto__BaseCommand *c, uint8_t into[HOT_MAX]);

#endif
