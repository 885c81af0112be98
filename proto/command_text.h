/* command_text.h - are the strings of a message strings?
 *
 * protobuf-c hands out what C takes for a string: of "a\0b" that is "a", another topic than the
 * one that was meant.  So a string with a NUL, or one that is not UTF-8, is refused before
 * anybody sees it; in nested messages too, as deep as any command goes and a good deal deeper.
 */
#ifndef PROTO_COMMAND_TEXT_H
#define PROTO_COMMAND_TEXT_H

#include <protobuf-c/protobuf-c.h>

#include "common/buf.h"
#include "common/err.h"

/* ERR_MALFORMED: no message at all, a string that is none, or nested deeper than 32. */
MUST_CHECK enum err command_check_text(const ProtobufCMessageDescriptor *type, struct view bytes);

#endif
