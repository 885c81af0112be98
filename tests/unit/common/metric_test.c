#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/flight.h"
#include "common/mem.h"
#include "common/metric.h"
#include "common/process.h"
#include "tests/lib/exposition.h"
#include "tests/lib/suite.h"
#include "tests/unit/common/captured.h"

struct metrics {
    struct metric adds, waiting;
};

static const struct metric_def defs[] = {
    {"bookie_adds_total", METRIC_COUNTER, "entries added", offsetof(struct metrics, adds)},
    {"bookie_waiting", METRIC_GAUGE, "entries that wait", offsetof(struct metrics, waiting)},
};

START_TEST(metrics_are_rendered_with_their_labels)
{
    struct metrics m = {0};
    struct text t = {0};
    metric_add(&m.adds, 40);
    metric_add(&m.adds, 2);
    metric_set(&m.waiting, -7);
    metric_render(&t, defs, 2, &m, "cluster=\"c\"");
    ck_assert_str_eq(t.at, "# HELP bookie_adds_total entries added\n"
                           "# TYPE bookie_adds_total counter\n"
                           "bookie_adds_total{cluster=\"c\"} 42\n"
                           "# HELP bookie_waiting entries that wait\n"
                           "# TYPE bookie_waiting gauge\n"
                           "bookie_waiting{cluster=\"c\"} -7\n");
    ck_assert_uint_eq(t.len, strlen(t.at));
    text_drop(&t);
    ck_assert_ptr_null(t.at);
    metric_render(&t, defs, 1, &m, NULL);
    ck_assert_ptr_nonnull(strstr(t.at, "\nbookie_adds_total 42\n"));
    text_drop(&t);
}
END_TEST

START_TEST(text_grows)
{
    struct text t = {0};
    char *big = mem_alloc(20001);
    memset(big, 'x', 20000);
    for (int i = 0; i < 10; i++)
        text_add(&t, "%s%d", big, i);
    ck_assert_uint_eq(t.len, 200010);
    ck_assert_uint_eq(strlen(t.at), 200010);
    ck_assert_int_eq(t.at[200009], '9');
    mem_free(big);
    text_drop(&t);
}
END_TEST

START_TEST(a_histogram_counts_and_estimates)
{
    struct histogram h = {0};
    struct text t = {0};
    ck_assert_uint_eq(histogram_quantile(&h, 0.99), 0);
    for (int i = 0; i < 98; i++)
        histogram_note(&h, 100);
    histogram_note(&h, 1000);
    histogram_note(&h, UINT64_C(1) << 40);
    ck_assert_uint_eq(histogram_quantile(&h, 0), 128);
    ck_assert_uint_eq(histogram_quantile(&h, 0.5), 128);
    ck_assert_uint_eq(histogram_quantile(&h, 0.98), 128);
    ck_assert_uint_eq(histogram_quantile(&h, 0.99), 1024);
    ck_assert_uint_eq(histogram_quantile(&h, 1), UINT64_C(1) << HISTOGRAM_BUCKETS);
    histogram_render(&t, "add_seconds", "time of an add", &h, "cluster=\"c\"");
    ck_assert_ptr_nonnull(strstr(t.at, "add_seconds_bucket{cluster=\"c\",le=\"6.4e-05\"} 0\n"));
    ck_assert_ptr_nonnull(strstr(t.at, "add_seconds_bucket{cluster=\"c\",le=\"0.000128\"} 98\n"));
    ck_assert_ptr_nonnull(strstr(t.at, "add_seconds_bucket{cluster=\"c\",le=\"8.388608\"} 99\n"));
    ck_assert_ptr_nonnull(strstr(t.at, "add_seconds_bucket{cluster=\"c\",le=\"+Inf\"} 100\n"));
    ck_assert_ptr_nonnull(strstr(t.at, "add_seconds_count{cluster=\"c\"} 100\n"));
    text_drop(&t);
    histogram_render(&t, "add_seconds", "time of an add", &h, NULL);
    ck_assert_ptr_nonnull(strstr(t.at, "add_seconds_bucket{le=\"1e-06\"} 0\n"));
    text_drop(&t);
}
END_TEST

START_TEST(a_summary_is_as_bookkeeper_prints_it)
{
    struct histogram h = {0}, more = {0};
    struct text t = {0};
    for (int i = 0; i < 50; i++)
        histogram_note(&h, 2000); /* of a bucket that ends at 2.048 ms */
    for (int i = 0; i < 50; i++)
        histogram_note(&more, 2000);
    histogram_merge(&h, &more);
    summary_render(&t, "add", "ms of an add", &h, NULL);
    exposition_check(t.at);
    ck_assert_ptr_nonnull(
        strstr(t.at, "# TYPE add summary\nadd{success=\"false\",quantile=\"0.5\"} NaN\n"));
    ck_assert_ptr_nonnull(
        strstr(t.at, "add_count{success=\"false\"} 0\nadd_sum{success=\"false\"} 0\n"));
    ck_assert(exposition_value(t.at, "add{success=\"true\",quantile=\"0.5\"}") == 1.536);
    ck_assert(exposition_value(t.at, "add{success=\"true\",quantile=\"1.0\"}") == 2.048);
    ck_assert(exposition_value(t.at, "add_count{success=\"true\"}") == 100);
    ck_assert(exposition_value(t.at, "add_sum{success=\"true\"}") == 200);
    text_drop(&t);
}
END_TEST

static void label_is(const char *value, const char *expected)
{
    struct text t = {0};
    text_add_label(&t, "l", value);
    ck_assert_str_eq(t.at, expected);
    text_drop(&t);
}

START_TEST(labels_are_escaped_and_utf8)
{
    label_is("", "l=\"\"");
    label_is("plain/name-1", "l=\"plain/name-1\"");
    label_is("a\"b\\c\nd", "l=\"a\\\"b\\\\c\\nd\"");
    label_is("gr\xc3\xbc\xc3\x9f", "l=\"gr\xc3\xbc\xc3\x9f\"");
    label_is("\xf0\x9f\x9a\x80", "l=\"\xf0\x9f\x9a\x80\"");
    label_is("\xff\xc3", "l=\"??\"");
    label_is("\xc0\xaf", "l=\"??\"");      /* too long for what it says */
    label_is("\xed\xa0\x80", "l=\"???\""); /* half of a pair */
    label_is("\xe2\x82", "l=\"??\"");      /* cut off */
}
END_TEST

START_TEST(a_process_knows_itself)
{
    struct text t = {0};
    process_render(&t, "cluster=\"c\"");
    exposition_check(t.at);
    ck_assert(exposition_value(t.at, "process_resident_memory_bytes{cluster=\"c\"}") > 100000);
    const double fds = exposition_value(t.at, "process_open_fds{cluster=\"c\"}");
    text_drop(&t);
    const int fd = dup(STDERR_FILENO);
    process_render(&t, NULL);
    ck_assert(exposition_value(t.at, "process_open_fds") == fds + 1);
    close(fd);
    text_drop(&t);
}
END_TEST

START_TEST(a_bucket_holds_its_upper_bound)
{
    struct histogram h = {0};
    histogram_note(&h, 0);
    histogram_note(&h, 1);
    histogram_note(&h, 2);
    histogram_note(&h, 3);
    histogram_note(&h, 4);
    ck_assert_uint_eq(h.bucket[0], 2);
    ck_assert_uint_eq(h.bucket[1], 1);
    ck_assert_uint_eq(h.bucket[2], 2);
}
END_TEST

/* ---- the flight recorder ----------------------------------------------------------------------
 */

static struct captured captured;

static void *note_some(void *arg)
{
    const int64_t *from = arg;
    pthread_setname_np(pthread_self(), "noter");
    for (int64_t i = 0; i < 5000; i++)
        flight_note("entry.added", *from + i, -i);
    return NULL;
}

START_TEST(the_last_records_of_a_thread_are_dumped)
{
    pthread_t thread;
    int64_t from = 100000;
    pthread_create(&thread, NULL, note_some, &from);
    pthread_join(thread, NULL);
    flight_note("main.noted", INT64_MIN, INT64_MAX);
    capture_start(&captured);
    flight_dump(STDERR_FILENO);
    const char *text = capture_end(&captured);
    ck_assert_ptr_nonnull(strstr(text, "flight.dumped thread=noter records=5000\n"));
    ck_assert_ptr_null(strstr(text, " entry.added 100903 -903\n"));
    ck_assert_ptr_nonnull(strstr(text, " entry.added 100904 -904\n"));
    const char *last = strstr(text, " entry.added 104999 -4999\n");
    ck_assert_ptr_nonnull(last);
    ck_assert_ptr_null(strstr(last + 1, " entry.added "));
    ck_assert_ptr_nonnull(strstr(text, " main.noted -9223372036854775808 9223372036854775807\n"));
}
END_TEST

START_TEST(a_crash_dumps_and_still_kills)
{
    static const int signals[] = {SIGSEGV, SIGABRT, SIGBUS};
    int status;
    fflush(stdout);
    capture_start(&captured);
    const pid_t child = fork();
    if (child == 0) {
        flight_install();
        flight_note("before.crashed", 7, 8);
        raise(SIGUSR2);
        raise(signals[_i]);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    const char *text = capture_end(&captured);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), signals[_i]);
    const char *first = strstr(text, " before.crashed 7 8\n");
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_nonnull(strstr(first + 1, " before.crashed 7 8\n"));
}
END_TEST

int main(void)
{
    return suite_run("metric", (suite_case[]){
                                   SUITE_CASE(metrics_are_rendered_with_their_labels),
                                   SUITE_CASE(text_grows),
                                   SUITE_CASE(a_histogram_counts_and_estimates),
                                   SUITE_CASE(a_summary_is_as_bookkeeper_prints_it),
                                   SUITE_CASE(labels_are_escaped_and_utf8),
                                   SUITE_CASE(a_process_knows_itself),
                                   SUITE_CASE(a_bucket_holds_its_upper_bound),
                                   SUITE_CASE(the_last_records_of_a_thread_are_dumped),
                                   SUITE_LOOP(a_crash_dumps_and_still_kills, 3),
                                   {0},
                               });
}
