/* record_check.h - can a record that was read be written and read again?
 *
 * Unknown fields are kept as they came.  One with number 0, which protobuf forbids, is let
 * in by protobuf-c when its tag is written in more bytes than it needs, and refused when
 * protobuf-c has written it: a read-modify-write would leave a value that nobody can read.
 */
#ifndef METADATA_RECORD_CHECK_H
#define METADATA_RECORD_CHECK_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

bool record_survives(const ProtobufCMessage *m);

#endif
