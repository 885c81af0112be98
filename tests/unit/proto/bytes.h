/* bytes.h - bytes for codec tests: from hex, and cut to a size that a sanitizer can watch. */
#ifndef TESTS_UNIT_PROTO_BYTES_H
#define TESTS_UNIT_PROTO_BYTES_H

#include <check.h>
#include <stdint.h>
#include <string.h>

#include "common/buf.h"
#include "common/mem.h"

enum { BYTES_MAX = 4096 };

/* One test vector: hex digits, blanks between them. */
struct bytes {
    uint8_t at[BYTES_MAX];
    size_t len;
};

static inline uint8_t bytes_digit(char c)
{
    return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static inline struct bytes bytes_of(const char *hex)
{
    struct bytes b = {.len = 0};

    while (*hex) {
        if (*hex == ' ') {
            hex++;
            continue;
        }
        b.at[b.len++] = (uint8_t)(bytes_digit(hex[0]) << 4 | bytes_digit(hex[1]));
        hex += 2;
    }
    return b;
}

static inline struct view bytes_view(const struct bytes *b)
{
    return view_of(b->at, b->len);
}

#define ck_bytes_eq(got, n, hex)                      \
    do {                                              \
        struct bytes want_ = bytes_of(hex);           \
        ck_assert_uint_eq((n), want_.len);            \
        ck_assert_mem_eq((got), want_.at, want_.len); \
    } while (0)

/* The first n bytes alone in their own memory: reading past them is seen by a sanitizer.
 * Gives; mem_free() the base. */
static inline struct view bytes_cut(struct view v, size_t n)
{
    uint8_t *copy = n ? mem_alloc(n) : NULL;
    if (n)
        memcpy(copy, v.base, n);
    return view_of(copy, n);
}

static inline void bytes_free(struct view v)
{
    mem_free((void *)(uintptr_t)v.base);
}

#endif
