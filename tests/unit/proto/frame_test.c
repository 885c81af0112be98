#include "proto/frame.h"

#include "common/crc32c.h"
#include "proto/wire.h"
#include "tests/lib/suite.h"
#include "tests/unit/proto/bytes.h"

#define COMMAND "00000003 08 12 00"
#define CHECKED "00000002 4d4d 7061796c6f6164"

/* A frame with magic and crc; a crc that is off by something is wrong. */
static struct bytes with_crc(const char *command, uint32_t off_by)
{
    struct bytes checked = bytes_of(CHECKED), b = bytes_of(command);
    struct writer w = {.base = b.at, .len = b.len, .room = BYTES_MAX};

    frame_magic(w.base + w.len, crc32c(checked.at, checked.len) + off_by);
    w.len += FRAME_MAGIC_SIZE;
    write_bytes(&w, checked.at, checked.len);
    b.len = w.len;
    return b;
}

START_TEST(a_simple_command_has_no_body)
{
    struct bytes b = bytes_of(COMMAND);
    struct frame f;

    ck_assert_int_eq(frame_split(bytes_view(&b), &f), ERR_OK);
    ck_bytes_eq(f.command.base, f.command.len, "081200");
    ck_assert_uint_eq(f.body.len, 0);
    ck_assert(!f.has_crc);
    ck_assert_int_eq(frame_check(&f), ERR_OK);
}
END_TEST

START_TEST(a_payload_frame_is_split_and_checked)
{
    struct bytes b = with_crc(COMMAND, 0);
    struct frame f;

    ck_assert_int_eq(frame_split(bytes_view(&b), &f), ERR_OK);
    ck_assert(f.has_crc);
    ck_assert_ptr_eq(f.body.base, b.at + 7);
    ck_assert_uint_eq(f.body.len, b.len - 7);
    ck_bytes_eq(f.checked.base, f.checked.len, CHECKED);
    ck_assert_mem_eq(f.metadata.base, "MM", 2);
    ck_assert_uint_eq(f.payload.len, 7);
    ck_assert_mem_eq(f.payload.base, "payload", 7);
    ck_assert_int_eq(frame_check(&f), ERR_OK);
}
END_TEST

START_TEST(a_wrong_crc_is_a_checksum_error)
{
    struct bytes b = with_crc(COMMAND, 1);
    struct frame f;

    ck_assert_int_eq(frame_split(bytes_view(&b), &f), ERR_OK);
    ck_assert_int_eq(frame_check(&f), ERR_CHECKSUM);
}
END_TEST

START_TEST(the_crc_may_be_left_out)
{
    struct bytes b = bytes_of(COMMAND CHECKED);
    struct frame f;

    ck_assert_int_eq(frame_split(bytes_view(&b), &f), ERR_OK);
    ck_assert(!f.has_crc);
    ck_bytes_eq(f.body.base, f.body.len, CHECKED);
    ck_bytes_eq(f.checked.base, f.checked.len, CHECKED);
    ck_assert_mem_eq(f.metadata.base, "MM", 2);
    ck_assert_mem_eq(f.payload.base, "payload", 7);
    ck_assert_int_eq(frame_check(&f), ERR_OK);
}
END_TEST

START_TEST(a_body_alone_splits_the_same)
{
    struct bytes b = with_crc("", 0);
    struct frame f;

    ck_assert_int_eq(frame_split_body(bytes_view(&b), &f), ERR_OK);
    ck_assert_uint_eq(f.command.len, 0);
    ck_assert_uint_eq(f.body.len, b.len);
    ck_assert_mem_eq(f.metadata.base, "MM", 2);
    ck_assert_int_eq(frame_check(&f), ERR_OK);
    ck_assert_int_eq(frame_split_body(view_of(NULL, 0), &f), ERR_MALFORMED);
}
END_TEST

/* Cut anywhere before the payload it is refused; the frame that ends with its command is whole. */
static void refuse_cuts(struct bytes b, size_t fixed)
{
    for (size_t n = 0; n < fixed; n++) {
        struct view cut = bytes_cut(bytes_view(&b), n);
        struct frame f;
        enum err e = frame_split(cut, &f);
        if (n == 7)
            ck_assert_int_eq(e, ERR_OK);
        else
            ck_assert_int_eq(e, ERR_MALFORMED);
        bytes_free(cut);
    }
}

START_TEST(every_truncation_is_refused)
{
    struct bytes b = bytes_of(COMMAND CHECKED);

    refuse_cuts(b, b.len - 7);
    b = with_crc(COMMAND, 0);
    refuse_cuts(b, b.len - 7);
}
END_TEST

START_TEST(sizes_beyond_the_frame_are_refused)
{
    struct bytes command = bytes_of("ffffffff 081200"),
                 metadata = bytes_of(COMMAND "0e01 00000000 ffffffff 00");
    struct frame f;

    ck_assert_int_eq(frame_split(bytes_view(&command), &f), ERR_MALFORMED);
    ck_assert_int_eq(frame_split(bytes_view(&metadata), &f), ERR_MALFORMED);
}
END_TEST

int main(void)
{
    return suite_run("frame", (suite_case[]){SUITE_CASE(a_simple_command_has_no_body),
                                             SUITE_CASE(a_payload_frame_is_split_and_checked),
                                             SUITE_CASE(a_wrong_crc_is_a_checksum_error),
                                             SUITE_CASE(the_crc_may_be_left_out),
                                             SUITE_CASE(a_body_alone_splits_the_same),
                                             SUITE_CASE(every_truncation_is_refused),
                                             SUITE_CASE(sizes_beyond_the_frame_are_refused),
                                             {0}});
}
