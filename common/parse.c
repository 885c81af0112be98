#include "common/parse.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/mem.h"

enum err parse_u64(const char *s, uint64_t *out)
{
    char *end;
    if (!isdigit((unsigned char)s[0]))
        return ERR_MALFORMED;
    errno = 0;
    unsigned long long v = strtoull(s, &end, 10);
    if (errno || *end)
        return ERR_MALFORMED;
    *out = v;
    return ERR_OK;
}

enum err parse_i64(const char *s, int64_t *out)
{
    char *end;
    if (!isdigit((unsigned char)s[s[0] == '-' || s[0] == '+']))
        return ERR_MALFORMED;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (errno || *end)
        return ERR_MALFORMED;
    *out = v;
    return ERR_OK;
}

enum err parse_double(const char *s, double *out)
{
    char *end;
    if (!s[0] || isspace((unsigned char)s[0]))
        return ERR_MALFORMED;
    errno = 0;
    double v = strtod(s, &end);
    if (errno || *end || !isfinite(v))
        return ERR_MALFORMED;
    *out = v;
    return ERR_OK;
}

enum err parse_bool(const char *s, bool *out)
{
    bool yes = strcasecmp(s, "true") == 0;
    if (!yes && strcasecmp(s, "false") != 0)
        return ERR_MALFORMED;
    *out = yes;
    return ERR_OK;
}

/* Where the host ends and the port begins; a bare v6 address has no such place. */
static const char *port_of(const char *s, const char **host, size_t *host_len)
{
    const char *colon = strrchr(s, ':');
    if (!colon)
        return NULL;
    *host = s;
    *host_len = (size_t)(colon - s);
    if (s[0] == '[') {
        if (*host_len < 3 || colon[-1] != ']')
            return NULL;
        *host = s + 1;
        *host_len -= 2;
    } else if (memchr(s, ':', *host_len)) {
        return NULL;
    }
    return *host_len > 0 ? colon + 1 : NULL;
}

enum err parse_host_port(const char *s, char **host, uint16_t *port)
{
    const char *name;
    size_t len;
    uint64_t number;
    const char *digits = port_of(s, &name, &len);
    if (!digits)
        return ERR_MALFORMED;
    TRY(parse_u64(digits, &number));
    if (number > UINT16_MAX)
        return ERR_MALFORMED;
    *host = mem_string_n(name, len);
    *port = (uint16_t)number;
    return ERR_OK;
}
