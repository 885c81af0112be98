/* parse.h - text to numbers, all of it or nothing. */
#ifndef COMMON_PARSE_H
#define COMMON_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

/* Whole string, base 10, no sign for u64; ERR_MALFORMED otherwise. */
MUST_CHECK enum err parse_u64(const char *s, uint64_t *out);
MUST_CHECK enum err parse_i64(const char *s, int64_t *out);
MUST_CHECK enum err parse_double(const char *s, double *out);
MUST_CHECK enum err parse_bool(const char *s, bool *out); /* true false, any case */
/* "host:port", "[v6]:port": gives *host. */
MUST_CHECK enum err parse_host_port(const char *s, char **host, uint16_t *port);

#endif
