#include "tests/lib/suite.h"

#include <stdlib.h>

int suite_run(const char *name, const suite_case *cases)
{
    Suite *suite = suite_create(name);
    for (const suite_case *c = cases; c->name; c++) {
        TCase *one = tcase_create(c->name);
        tcase_set_timeout(one, c->timeout_s ? c->timeout_s : 60);
        if (c->rounds)
            tcase_add_loop_test(one, c->test, 0, c->rounds);
        else
            tcase_add_test(one, c->test);
        suite_add_tcase(suite, one);
    }
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
