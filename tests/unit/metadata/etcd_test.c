#include <stdio.h>

#include "metadata/etcd.h"
#include "metadata/metadata.h"
#include "tests/lib/etcd.h"
#include "tests/lib/suite.h"
#include "tests/unit/metadata/conformance.h"

static struct test_etcd etcd;

/* One etcd for all: each case has a root of its own. */
START_TEST(conforms)
{
    char url[256], root[32];
    struct metadata *m;

    snprintf(root, sizeof root, "/case-%d", _i);
    test_etcd_url(&etcd, root, url, sizeof url);
    const struct meta_etcd_conf conf = {.url = url};
    ck_assert_int_eq(meta_etcd_open(&m, &conf), ERR_OK);
    conformance_run(_i, m);
    meta_close(&m);
    ck_assert_ptr_null(m);
}
END_TEST

int main(void)
{
    if (!test_etcd_start(&etcd, 1, NULL))
        return test_etcd_skip();
    int failed = suite_run("etcd", (suite_case[]){SUITE_LOOP(conforms, conformance_count()), {0}});
    test_etcd_stop(&etcd);
    return failed;
}
