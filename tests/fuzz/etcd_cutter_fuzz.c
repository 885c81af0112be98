#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "metadata/etcd_cutter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TOTAL_MAX = 64 * 1024 };

struct cut {
    uint8_t bytes[TOTAL_MAX];
    size_t len;
    enum err end;
};

static void cut_all(struct cut *out, const uint8_t *data, size_t size, size_t step)
{
    struct etcd_cutter c = {.max = 300};

    out->len = 0;
    out->end = ERR_END;
    for (size_t at = 0; at < size && out->end == ERR_END; at += step) {
        struct view part = view_of(data + at, size - at < step ? size - at : step), message;
        while (!(out->end = etcd_cut(&c, &part, &message))) {
            if (message.len > c.max || out->len + message.len + 1 > TOTAL_MAX)
                abort();
            if (message.len)
                memcpy(out->bytes + out->len, message.base, message.len);
            out->len += message.len;
            out->bytes[out->len++] = '|';
        }
    }
    etcd_cutter_drop(&c);
}

/* However the bytes come, the same messages and the same end. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct cut whole, pieces;

    if (size == 0 || size > TOTAL_MAX / 8)
        return 0;
    cut_all(&whole, data + 1, size - 1, size);
    cut_all(&pieces, data + 1, size - 1, data[0] % 37 + 1);
    if (whole.len != pieces.len || whole.end != pieces.end ||
        memcmp(whole.bytes, pieces.bytes, whole.len) != 0)
        abort();
    return 0;
}
