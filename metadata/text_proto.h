/* text_proto.h - protobuf's text form, read field by field: cookies, old ledger metadata.
 *
 *   name: 12   name: WORD   name: "bytes\t\001" "more"   name { ... }   # comment
 *
 *   while (!(e = text_next(&r, &f))) { ...; text_field_drop(&f); }   ERR_END: all is read
 *
 * At TEXT_OPEN the caller either reads the fields inside with text_next() until ERR_END, or
 * calls text_skip().
 *
 * Memory:  names and words borrow the text; bytes are given.
 * Limits:  messages inside each other: TEXT_DEPTH_MAX.
 */
#ifndef METADATA_TEXT_PROTO_H
#define METADATA_TEXT_PROTO_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"

enum { TEXT_DEPTH_MAX = 16 };

struct text_reader {
    const char *at, *end;
    unsigned depth;
};

struct text_field {
    struct view name;
    enum { TEXT_WORD, TEXT_BYTES, TEXT_OPEN } kind;
    struct view word; /* a number or an enum's name */
    char *bytes;      /* with a NUL after them */
    size_t len;
};

struct text_reader text_reader_of(struct view v);
MUST_CHECK enum err text_next(struct text_reader *r, struct text_field *out); /* gives */
MUST_CHECK enum err text_skip(struct text_reader *r); /* the rest of an opened message */
void text_field_drop(struct text_field *f);
bool text_is(const struct text_field *f, const char *name);
MUST_CHECK enum err text_i64(const struct text_field *f, int64_t *out);
/* Takes the bytes out of the field as a string: ERR_MALFORMED for words and for a NUL inside. */
MUST_CHECK enum err text_string(struct text_field *f, char **out); /* gives */

/* Appends `name: "value"\n` to memory of *len bytes that grows. */
void text_write_string(char **into, size_t *len, const char *name, const char *value);

#endif
