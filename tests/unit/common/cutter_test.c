#include <stdbool.h>
#include <string.h>

#include "common/cutter.h"
#include "common/mem.h"
#include "common/outbox.h"
#include "common/rng.h"
#include "tests/lib/suite.h"

/* Hands `len` bytes over in pieces of random size, as a readv of two places would. */
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

/* Frames of the numbers 0, 1, 2 ... of random length; gives all of it. */
static uint8_t *make_stream(uint64_t *seed, unsigned frames, size_t *len)
{
    uint8_t *bytes = mem_alloc(frames * (4 + 300));
    size_t at = 0;
    for (unsigned i = 0; i < frames; i++) {
        const size_t n = rng_below(seed, 4) ? rng_below(seed, 20) : rng_below(seed, 300);
        bytes[at + 2] = (uint8_t)(n >> 8);
        bytes[at + 3] = (uint8_t)n;
        memset(bytes + at + 4, (uint8_t)i, n);
        at += 4 + n;
    }
    *len = at;
    return bytes;
}

static unsigned cut_all(struct cutter *c, unsigned number, size_t *left)
{
    struct slice frame;
    enum err e;
    while ((e = cutter_next(c, &frame)) == ERR_OK) {
        for (size_t i = 0; i < frame.len; i++)
            ck_assert_uint_eq(frame.base[i], (uint8_t)number);
        ck_assert_uint_ge(*left, 4 + frame.len);
        *left -= 4 + frame.len;
        slice_drop(&frame);
        number++;
    }
    ck_assert_int_eq(e, ERR_END);
    return number;
}

START_TEST(any_pieces_give_the_same_frames)
{
    for (uint64_t round = 0; round < 300; round++) {
        struct cutter c = {.frame_max = 300};
        uint64_t seed = round;
        unsigned frames = 0;
        size_t len, left;
        uint8_t *bytes = make_stream(&seed, 100, &len);
        left = len;
        const size_t piece = round % 3 == 0 ? 3 : round % 3 == 1 ? 50 : 2000;
        for (size_t at = 0, n; at < len; at += n) {
            n = 1 + rng_below(&seed, piece);
            n = n < len - at ? n : len - at;
            feed(&c, bytes + at, n);
            frames = cut_all(&c, frames, &left);
        }
        ck_assert_uint_eq(frames, 100);
        ck_assert_uint_eq(left, 0);
        ck_assert(cutter_is_between(&c));
        mem_free(bytes);
        cutter_drop(&c);
    }
    ck_assert_uint_eq(slab_bytes_in_use(), 0);
}
END_TEST

START_TEST(a_whole_frame_is_not_copied)
{
    struct cutter c = {.frame_max = 300};
    struct slice read = slice_copy("\0\0\0\2ab\0\0\0\1c", 11), frame;
    const uint8_t *base = read.base;
    cutter_take(&c, read);
    ck_assert_int_eq(cutter_next(&c, &frame), ERR_OK);
    ck_assert_ptr_eq(frame.base, base + 4);
    slice_drop(&frame);
    ck_assert(!cutter_is_between(&c));
    ck_assert_int_eq(cutter_next(&c, &frame), ERR_OK);
    ck_assert_ptr_eq(frame.base, base + 10);
    slice_drop(&frame);
    ck_assert_int_eq(cutter_next(&c, &frame), ERR_END);
    ck_assert(cutter_is_between(&c));
}
END_TEST

START_TEST(a_begun_frame_has_room_for_its_rest_only)
{
    struct cutter c = {.frame_max = 300};
    struct slice frame;
    ck_assert_uint_eq(cutter_room(&c).iov_len, 0);
    cutter_take(&c, slice_copy("\0\0\0\5ab", 6));
    ck_assert_int_eq(cutter_next(&c, &frame), ERR_END);
    ck_assert_uint_eq(cutter_room(&c).iov_len, 3);
    ck_assert_uint_eq(cutter_wanted(&c), 5);
    ck_assert(!cutter_is_between(&c));
    cutter_drop(&c);
    ck_assert_uint_eq(slab_bytes_in_use(), 0);
}
END_TEST

/* Who announces 5 MB is given room for what has come, about. */
START_TEST(a_large_frame_gets_room_as_it_comes)
{
    enum { LEN = 5000000, PIECE = 10000 };
    struct cutter c = {.frame_max = LEN};
    struct slice frame;
    uint8_t *bytes = mem_alloc(PIECE);
    cutter_take(&c, slice_copy("\0\x4c\x4b\x40", 4));
    ck_assert_int_eq(cutter_next(&c, &frame), ERR_END);
    ck_assert_uint_eq(cutter_wanted(&c), LEN);
    ck_assert_uint_le(slab_bytes_in_use(), 270000);
    for (size_t at = 0; at < LEN; at += PIECE) {
        ck_assert_uint_le(slab_bytes_in_use(), 270000 + 4 * at);
        memset(bytes, (int)(at / PIECE), PIECE);
        feed(&c, bytes, PIECE);
        ck_assert_int_eq(cutter_next(&c, &frame), at + PIECE < LEN ? ERR_END : ERR_OK);
    }
    ck_assert_uint_eq(frame.len, LEN);
    for (size_t at = 0; at < LEN; at++)
        ck_assert_uint_eq(frame.base[at], (uint8_t)(at / PIECE));
    mem_free(bytes);
    slice_drop(&frame);
    cutter_drop(&c);
    ck_assert_uint_eq(slab_bytes_in_use(), 0);
}
END_TEST

START_TEST(too_big_is_for_good)
{
    struct cutter c = {.frame_max = 300};
    struct slice frame;
    cutter_take(&c, slice_copy("\0\0\1\x2d\0\0\0\0", 8));
    ck_assert_int_eq(cutter_next(&c, &frame), ERR_TOO_BIG);
    ck_assert_uint_eq(cutter_wanted(&c), 301);
    ck_assert_int_eq(cutter_next(&c, &frame), ERR_TOO_BIG);
    cutter_drop(&c);
    ck_assert_uint_eq(slab_bytes_in_use(), 0);
}
END_TEST

/* Against a flat string: what is put in comes out, in order, however it is taken. */
START_TEST(an_outbox_is_a_queue_of_bytes)
{
    enum { MOST = 200000 };
    struct outbox o = {0};
    uint8_t *all = mem_alloc(MOST), copy[100];
    size_t in = 0, out = 0;
    uint64_t seed = 1;
    while (in < MOST - 300) {
        if (rng_below(&seed, 3)) {
            const size_t n = rng_below(&seed, 300);
            for (size_t i = 0; i < n; i++)
                all[in + i] = (uint8_t)rng_next(&seed);
            const bool borrowed = rng_below(&seed, 2);
            outbox_put(&o, borrowed ? (struct slice){.base = all + in, .len = n}
                                    : slice_copy(all + in, n));
            in += n;
        } else if (rng_below(&seed, 50) == 0) {
            outbox_sent(&o, o.bytes);
            out = in;
        } else {
            struct iovec iov[4];
            const size_t len = outbox_copy(&o, copy, sizeof copy);
            ck_assert_mem_eq(copy, all + out, len);
            size_t at = out;
            for (int i = 0, n = outbox_iov(&o, iov, 4); i < n; at += iov[i++].iov_len)
                ck_assert_mem_eq(iov[i].iov_base, all + at, iov[i].iov_len);
            const size_t sent = rng_below(&seed, (at - out) + 1);
            outbox_sent(&o, sent);
            out += sent;
        }
        ck_assert_uint_eq(o.bytes, in - out);
    }
    outbox_drop(&o);
    mem_free(all);
    ck_assert_uint_eq(slab_bytes_in_use(), 0);
}
END_TEST

int main(void)
{
    return suite_run("cutter", (suite_case[]){
                                   SUITE_CASE(any_pieces_give_the_same_frames),
                                   SUITE_CASE(a_whole_frame_is_not_copied),
                                   SUITE_CASE(a_begun_frame_has_room_for_its_rest_only),
                                   SUITE_CASE(a_large_frame_gets_room_as_it_comes),
                                   SUITE_CASE(too_big_is_for_good),
                                   SUITE_CASE(an_outbox_is_a_queue_of_bytes),
                                   {0},
                               });
}
