/* command.h - commands between their bytes and protobuf-c structs, and no leaks.
 *
 * An unpacked struct lives in the arena: never call the generated free_unpacked().
 */
#ifndef PROTO_COMMAND_H
#define PROTO_COMMAND_H

#include <protobuf-c/protobuf-c.h>

#include "common/arena.h"
#include "common/buf.h"
#include "common/err.h"
#include "proto/pulsar.pb-c.h"

/* *out borrows from the arena (bytes and strings are copied there): gone at the next
 * arena_reset().  ERR_TOO_BIG past the arena's limit, else ERR_MALFORMED; also for messages nested
 * deeper than any command, which protobuf-c would follow until the stack ends. */
MUST_CHECK enum err command_unpack(const ProtobufCMessageDescriptor *type, struct view bytes,
                                   struct arena *arena, ProtobufCMessage **out);

/* A BaseCommand; also refuses one of no known type, or without the sub-message of its type,
 * or with a string that holds a NUL or is not UTF-8. */
MUST_CHECK enum err command_read(struct view bytes, struct arena *arena,
                                 Pulsar__Proto__BaseCommand **out);
const char *command_name(int type); /* "SEND"; "UNKNOWN" */

/* A whole simple frame, total size included, ready for conn_send(). */
struct slice command_frame(const Pulsar__Proto__BaseCommand *c); /* gives */
/* The front of a payload frame whose body (from 0x0e01) follows it: total size, command. */
struct slice command_front(const Pulsar__Proto__BaseCommand *c, size_t body_len); /* gives */

#endif
