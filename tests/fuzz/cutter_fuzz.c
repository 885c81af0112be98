#include <assert.h>
#include <string.h>

#include "common/cutter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void feed(struct cutter *c, const uint8_t *bytes, size_t len)
{
    const struct iovec room = cutter_room(c);
    const size_t of_part = len < room.iov_len ? len : room.iov_len;
    if (of_part > 0) {
        memcpy(room.iov_base, bytes, of_part);
        cutter_filled(c, of_part);
    }
    if (len > of_part)
        cutter_take(c, slice_copy(bytes + of_part, len - of_part));
}

/* The next frame must be what a reader of the whole would find at *at. */
static void check_frame(const struct slice *frame, const uint8_t *bytes, size_t size, size_t *at)
{
    assert(size - *at >= 4);
    const uint8_t *head = bytes + *at;
    const size_t len =
        (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | (size_t)head[3];
    assert(frame->len == len);
    assert(size - *at - 4 >= len);
    assert(len == 0 || memcmp(frame->base, head + 4, len) == 0);
    *at += 4 + len;
}

/* The first byte says in what pieces the others arrive. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct cutter c = {.frame_max = 1 << 16};
    const size_t piece = 1 + data[0];
    const uint8_t *bytes = data + 1;
    size_t at = 0;
    enum err e = ERR_END;
    size--;
    for (size_t fed = 0, n; fed < size && e == ERR_END; fed += n) {
        struct slice frame;
        n = piece < size - fed ? piece : size - fed;
        feed(&c, bytes + fed, n);
        while ((e = cutter_next(&c, &frame)) == ERR_OK) {
            check_frame(&frame, bytes, size, &at);
            slice_drop(&frame);
        }
    }
    assert(e == ERR_END || e == ERR_TOO_BIG);
    cutter_drop(&c);
    assert(slab_bytes_in_use() == 0);
    return 0;
}
