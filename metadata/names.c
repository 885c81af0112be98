#include "metadata/names.h"

#include <stdint.h>
#include <string.h>

#include "common/mem.h"
#include "metadata/paths.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

static bool consists_of(const char *s, const char *also)
{
    for (; *s; s++)
        if (!strchr(letters, *s) && !strchr(also, *s))
            return false;
    return true;
}

bool name_is_entity(const char *s)
{
    return *s && consists_of(s, "-=:._");
}

bool name_is_bookie(const char *s)
{
    return *s && consists_of(s, "-:._[]%") && strcmp(s, "readonly") != 0;
}

/* Bytes of the UTF-8 sequence at s, 0 for none: shortest form, no surrogates, to U+10FFFF. */
static size_t sequence(const uint8_t *s)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

    if (s[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f))
        return 0;
    if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

static bool is_utf8(const char *text)
{
    const uint8_t *s = (const uint8_t *)text;

    while (*s) {
        size_t n = sequence(s);
        if (n == 0)
            return false;
        s += n;
    }
    return true;
}

bool name_is_local(const char *s)
{
    return *s && strlen(s) <= NAME_LOCAL_MAX && !strchr(s, '/') && is_utf8(s);
}

char *name_encode(const char *s)
{
    static const char hex[] = "0123456789ABCDEF";
    char *out = mem_alloc(strlen(s) * 3 + 1), *to = out;

    for (; *s; s++) {
        uint8_t byte = (uint8_t)*s;
        if (strchr(letters, *s) || strchr(".-*_", *s)) {
            *to++ = *s;
        } else if (*s == ' ') {
            *to++ = '+';
        } else {
            *to++ = '%';
            *to++ = hex[byte >> 4];
            *to++ = hex[byte & 15];
        }
    }
    return out;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte of "%XX"; 0 is none, for no name holds a NUL. */
static char escaped(const char *s)
{
    int high = digit(s[1]);
    int low = high < 0 ? -1 : digit(s[2]);

    return low < 0 ? 0 : (char)(high * 16 + low);
}

enum err name_decode(const char *s, char **out)
{
    char *text = mem_alloc(strlen(s) + 1), *to = text;

    while (*s) {
        char c = *s == '%' ? escaped(s) : *s == '+' ? ' ' : *s;
        if (!c) {
            mem_free(text);
            return ERR_INVALID_NAME;
        }
        s += *s == '%' ? 3 : 1;
        *to++ = c;
    }
    *out = text;
    return ERR_OK;
}
