/* suite.h - the frame of a unit test: cases, run by Check, counted by `make test`.
 *
 *   START_TEST(roundtrip) { ck_assert(...); } END_TEST
 *   int main(void) { return suite_run("frame", (suite_case[]){SUITE_CASE(roundtrip), {0}}); }
 *
 * Each case runs in a process of its own (CK_FORK=no in the environment turns that off,
 * for a debugger or a sanitizer that wants one process).
 */
#ifndef TESTS_LIB_SUITE_H
#define TESTS_LIB_SUITE_H

#include <check.h>

typedef struct suite_case {
    const char *name;
    const TTest *test;
    int rounds;    /* 0: once; n: a loop test over _i in 0..n-1 */
    int timeout_s; /* 0: 60 */
} suite_case;

#define SUITE_CASE(fn)          \
    {                           \
        .name = #fn, .test = fn \
    }
#define SUITE_LOOP(fn, n)                      \
    {                                          \
        .name = #fn, .test = fn, .rounds = (n) \
    }
#define SUITE_SLOW(fn, secs)                         \
    {                                                \
        .name = #fn, .test = fn, .timeout_s = (secs) \
    }

int suite_run(const char *name, const suite_case *cases); /* the exit code of main */

#endif
