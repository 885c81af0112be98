#include "common/err.h"

#include <assert.h>
#include <errno.h>

static const struct {
    const char *name;
    const char *text;
    enum err_class class;
    int pulsar;
    int bookie;
} table[ERR_COUNT] = {
#define X(sym, cls, pulsar, bookie, text) [ERR_##sym] = {#sym, text, CLASS_##cls, pulsar, bookie},
#include "common/err.def"
#undef X
};

const char *err_text(enum err e)
{
    assert(e < ERR_COUNT);
    return table[e].text;
}

const char *err_name(enum err e)
{
    assert(e < ERR_COUNT);
    return table[e].name;
}

enum err_class err_class(enum err e)
{
    assert(e < ERR_COUNT);
    return table[e].class;
}

int err_to_pulsar(enum err e)
{
    assert(e < ERR_COUNT);
    return table[e].pulsar;
}

int err_to_bookie(enum err e)
{
    assert(e < ERR_COUNT);
    return table[e].bookie;
}

/* Never ERR_OK: who asks has seen a call fail, whatever errno says by now. */
enum err err_of_errno(int saved_errno)
{
    switch (saved_errno) {
    case ENOENT:
        return ERR_NOT_FOUND;
    case EEXIST:
        return ERR_EXISTS;
    case ENOSPC:
    case EDQUOT:
        return ERR_NO_SPACE;
    case ETIMEDOUT:
        return ERR_TIMEOUT;
    case EPIPE:
    case ECONNRESET:
    case ECONNREFUSED:
    case ENOTCONN:
        return ERR_CLOSED;
    default:
        return ERR_IO;
    }
}
