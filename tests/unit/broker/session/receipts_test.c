/* Receipts leave in the order their publishes came, whatever finished first. */
#include "broker/session/receipts.h"

#include <string.h>

#include "tests/lib/suite.h"

struct one {
    struct receipt receipt;
    char name;
};

static char left[64];

static void leave(struct receipts *q, struct receipt *r)
{
    size_t n = strlen(left);

    (void)q;
    left[n] = container_of(r, struct one, receipt)->name;
    left[n + 1] = '\0';
}

START_TEST(in_order)
{
    struct one all[4] = {{.name = 'a'}, {.name = 'b'}, {.name = 'c'}, {.name = 'd'}};
    struct receipts q;

    left[0] = '\0';
    receipts_init(&q, leave);
    for (unsigned i = 0; i < 4; i++)
        receipts_add(&q, &all[i].receipt);
    receipts_done(&q, &all[1].receipt);
    receipts_done(&q, &all[3].receipt);
    ck_assert_str_eq(left, "");
    receipts_done(&q, &all[0].receipt);
    ck_assert_str_eq(left, "ab");
    receipts_done(&q, &all[2].receipt);
    ck_assert_str_eq(left, "abcd");
    ck_assert(list_empty(&q.waiting));
}
END_TEST

START_TEST(any_order_of_finishing)
{
    struct one all[5] = {{.name = 'a'}, {.name = 'b'}, {.name = 'c'}, {.name = 'd'}, {.name = 'e'}};
    static const unsigned orders[][5] = {
        {0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 0, 4, 1, 3}, {1, 0, 3, 2, 4}, {3, 4, 0, 2, 1}};
    struct receipts q;

    left[0] = '\0';
    receipts_init(&q, leave);
    for (unsigned i = 0; i < 5; i++)
        receipts_add(&q, &all[i].receipt);
    for (unsigned i = 0; i < 5; i++) {
        receipts_done(&q, &all[orders[_i][i]].receipt);
        ck_assert_int_eq(strncmp(left, "abcde", strlen(left)), 0);
    }
    ck_assert_str_eq(left, "abcde");
}
END_TEST

int main(void)
{
    return suite_run(
        "receipts",
        (suite_case[]){SUITE_CASE(in_order), SUITE_LOOP(any_order_of_finishing, 5), {0}});
}
