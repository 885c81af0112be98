#include "metadata/metadata.h"
#include "tests/lib/suite.h"
#include "tests/unit/metadata/conformance.h"

START_TEST(conforms)
{
    struct metadata *m;

    ck_assert_int_eq(meta_memory_open(&m), ERR_OK);
    conformance_run(_i, m);
    meta_close(&m);
    ck_assert_ptr_null(m);
    meta_close(&m);
}
END_TEST

int main(void)
{
    return suite_run("memory", (suite_case[]){SUITE_LOOP(conforms, conformance_count()), {0}});
}
