/* fan_test.c - which partition a message goes to. */
#include "cli/fan.h"

#include "cli/command.h"
#include "tests/lib/suite.h"

/* Stands for main.c's, which is in no library. */
int usage_error(const char *name, const char *fmt, ...)
{
    (void)name, (void)fmt;
    return EXIT_USAGE;
}

/* What Java's String.hashCode() says, without its sign. */
static const struct {
    const char *key;
    uint32_t hash;
} keys[] = {
    {"", 0},
    {"a", 97},
    {"hello", 99162322},
    {"polygenelubricants", 0}, /* -2^31 */
    {"gr\xc3\xbc\xc3\x9f", 3186062},
    {"\xf0\x9f\x98\x80", 1772899},
    {"\xe2\x82", 130}, /* cut off: whatever, but nothing behind it */
};

START_TEST(keys_hash_as_javas)
{
    ck_assert_uint_eq(fan_hash(keys[_i].key), keys[_i].hash);
}
END_TEST

START_TEST(without_a_key_they_take_turns)
{
    struct fan f = {.n = 3};

    for (unsigned i = 0; i < 7; i++)
        ck_assert_uint_eq(fan_place(&f, NULL), i % 3);
    for (unsigned i = 0; i < 7; i++)
        ck_assert_uint_eq(fan_place(&f, "hello"), 99162322 % 3);
}
END_TEST

int main(void)
{
    return suite_run("fan",
                     (suite_case[]){SUITE_LOOP(keys_hash_as_javas, sizeof(keys) / sizeof(keys[0])),
                                    SUITE_CASE(without_a_key_they_take_turns),
                                    {0}});
}
