/* perf_options_test.c - pulsar-perf's words, as `lgm perf` takes them. */
#include "cli/perf_options.h"

#include "cli/command.h"
#include "common/mem.h"
#include "tests/lib/suite.h"

enum { WORDS_MAX = 16 };

/* Stands for main.c's, which is in no library. */
int usage_error(const char *name, const char *fmt, ...)
{
    (void)name, (void)fmt;
    return EXIT_USAGE;
}

static int parse(struct perf_options *o, enum perf_command command, char **words)
{
    char *argv[WORDS_MAX + 1] = {(char *)(uintptr_t) "x"};
    int n = 1;
    for (; words[n - 1]; n++)
        argv[n] = words[n - 1];
    return perf_options_parse(o, command, n, argv);
}
#define PARSE(o, command, ...) parse(o, command, (char *[]){__VA_ARGS__, NULL})

static char topic[] = "t";

START_TEST(defaults_are_pulsar_perfs)
{
    struct perf_options o;
    ck_assert_int_eq(PARSE(&o, PERF_PRODUCE, topic), EXIT_DONE);
    ck_assert_str_eq(o.topic, "t");
    ck_assert_double_eq(o.rate, 100);
    ck_assert_uint_eq(o.size, 1024);
    ck_assert_uint_eq(o.batch_messages, 1000);
    ck_assert_uint_eq(o.topics * o.producers, 1);
    ck_assert_int_eq(PARSE(&o, PERF_CONSUME, topic), EXIT_DONE);
    ck_assert_double_eq(o.rate, 0);
    ck_assert(!o.earliest && o.type == SUB_EXCLUSIVE);
    ck_assert_int_eq(PARSE(&o, PERF_READ, topic), EXIT_DONE);
    ck_assert_int_eq(o.after.ledger, -1);
}
END_TEST

START_TEST(one_dash_or_two_a_space_or_an_equals_sign)
{
    struct perf_options o;
    char r[] = "-r", n1[] = "5", size[] = "--size=7", bm[] = "-bm", n2[] = "9", bd[] = "-bd",
         time[] = "-time=1.5", url[] = "--url", u[] = "pulsar://h";
    ck_assert_int_eq(PARSE(&o, PERF_PRODUCE, r, n1, size, topic, bm, n2, bd, time, url, u),
                     EXIT_DONE);
    ck_assert_double_eq(o.rate, 5);
    ck_assert_uint_eq(o.size, 7);
    ck_assert_uint_eq(o.batch_messages, 9);
    ck_assert(o.no_batching);
    ck_assert_double_eq(o.test_s, 1.5);
    ck_assert_str_eq(o.url, "pulsar://h");
}
END_TEST

/* -n and -m are other things to a reader. */
START_TEST(a_reader_has_words_of_its_own)
{
    struct perf_options o;
    char n[] = "-n", ten[] = "10", m[] = "-m", at[] = "3:4", bad[] = "3:", latest[] = "Latest";
    ck_assert_int_eq(PARSE(&o, PERF_READ, topic, n, ten, m, at), EXIT_DONE);
    ck_assert_uint_eq(o.messages, 10);
    ck_assert_uint_eq(o.consumers, 1);
    ck_assert(o.after.ledger == 3 && o.after.entry == 4 && o.after.batch_index == -1);
    ck_assert_int_eq(PARSE(&o, PERF_READ, topic, m, latest), EXIT_DONE);
    ck_assert_int_eq(o.after.ledger, INT64_MAX);
    ck_assert_int_eq(PARSE(&o, PERF_READ, topic, m, bad), EXIT_USAGE);
}
END_TEST

START_TEST(what_cannot_be_is_refused)
{
    struct perf_options o;
    char t[] = "-t", zero[] = "0", o_[] = "-o", x[] = "x", st[] = "-st", i[] = "-i", bd[] = "-bd=1";
    ck_assert_int_eq(PARSE(&o, PERF_PRODUCE, topic, topic), EXIT_USAGE);
    ck_assert_int_eq(PARSE(&o, PERF_PRODUCE, topic, t, zero), EXIT_USAGE);
    ck_assert_int_eq(PARSE(&o, PERF_PRODUCE, topic, o_, x), EXIT_USAGE);
    ck_assert_int_eq(PARSE(&o, PERF_PRODUCE, topic, o_), EXIT_USAGE);
    ck_assert_int_eq(PARSE(&o, PERF_PRODUCE, topic, st, x), EXIT_USAGE);
    ck_assert_int_eq(PARSE(&o, PERF_PRODUCE, topic, bd), EXIT_USAGE);
    ck_assert_int_eq(PARSE(&o, PERF_CONSUME, topic, st, x), EXIT_USAGE);
    ck_assert_int_eq(PARSE(&o, PERF_CONSUME, topic, i, zero), EXIT_USAGE);
    ck_assert_int_eq(PARSE(&o, PERF_CONSUME, st), EXIT_USAGE);
}
END_TEST

static void is(char *name, const char *expected)
{
    if (expected)
        ck_assert_str_eq(name, expected);
    else
        ck_assert_ptr_null(name);
    mem_free(name);
}

START_TEST(topics_and_subscriptions_have_names)
{
    struct perf_options o = {
        .topic = "t", .topics = 1, .subscriptions = "a,b", .n_subscriptions = 1};
    is(perf_topic(&o, 0), "t");
    is(perf_subscription(&o, 0), "a");
    is(perf_subscription(&o, 1), "b");
    is(perf_subscription(&o, 2), NULL);
    o.topics = 2;
    o.subscriptions = "s";
    o.n_subscriptions = 3;
    is(perf_topic(&o, 1), "t-1");
    is(perf_subscription(&o, 2), "s-2");
    is(perf_subscription(&o, 3), NULL);
}
END_TEST

int main(void)
{
    return suite_run("perf_options",
                     (suite_case[]){SUITE_CASE(defaults_are_pulsar_perfs),
                                    SUITE_CASE(one_dash_or_two_a_space_or_an_equals_sign),
                                    SUITE_CASE(a_reader_has_words_of_its_own),
                                    SUITE_CASE(what_cannot_be_is_refused),
                                    SUITE_CASE(topics_and_subscriptions_have_names),
                                    {0}});
}
