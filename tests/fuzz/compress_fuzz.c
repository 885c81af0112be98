#include <stdlib.h>
#include <string.h>

#include "proto/compress.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX = 60000, FRONT = 3 };

static void roundtrip(enum compression how, struct view plain)
{
    struct slice packed, back;

    if (compress_with(how, plain, &packed) ||
        decompress(how, slice_view(packed), plain.len, plain.len, &back))
        abort();
    if (plain.len && memcmp(back.base, plain.base, plain.len) != 0)
        abort();
    slice_drop(&packed);
    slice_drop(&back);
}

/* A byte says how, two the size that is declared. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum compression how;
    struct slice out;
    size_t declared;
    struct view rest;
    enum err e;

    if (size < FRONT)
        return 0;
    how = (enum compression)(data[0] % (COMPRESS_SNAPPY + 1));
    declared = (size_t)data[1] << 8 | data[2];
    rest = view_of(data + FRONT, size - FRONT);
    e = decompress(how, rest, declared, MAX, &out);
    if ((declared > MAX) != (e == ERR_TOO_BIG) || (e == ERR_OK && out.len != declared))
        abort();
    slice_drop(&out);
    roundtrip(how, rest);
    return 0;
}
