/* url_test.c - service urls, right and wrong. */
#include "client/url.h"
#include "tests/lib/suite.h"

START_TEST(plain_with_defaults)
{
    struct service_url u;
    ck_assert_int_eq(service_url_parse("pulsar://localhost", &u), ERR_OK);
    ck_assert(!u.tls);
    ck_assert_uint_eq(u.n, 1);
    ck_assert_str_eq(u.at[0].host, "localhost");
    ck_assert_uint_eq(u.at[0].port, 6650);
    service_url_drop(&u);
}
END_TEST

START_TEST(several_hosts_and_a_path)
{
    struct service_url u;
    ck_assert_int_eq(service_url_parse("pulsar+ssl://a:1,b,[::1]:3/path", &u), ERR_OK);
    ck_assert(u.tls);
    ck_assert_uint_eq(u.n, 3);
    ck_assert_str_eq(u.at[1].host, "b");
    ck_assert_uint_eq(u.at[0].port, 1);
    ck_assert_uint_eq(u.at[1].port, 6651);
    ck_assert_uint_eq(u.at[2].port, 3);
    service_url_drop(&u);
}
END_TEST

START_TEST(wrong_ones)
{
    static const char *const bad[] = {"",
                                      "localhost:6650",
                                      "http://localhost",
                                      "pulsar://",
                                      "pulsar://a,,b",
                                      "pulsar://a:99999",
                                      "pulsar://a:",
                                      "pulsar://a:1,b:port"};
    struct service_url u;
    ck_assert_int_eq(service_url_parse(bad[_i], &u), ERR_MALFORMED);
}
END_TEST

int main(void)
{
    return suite_run("url", (suite_case[]){SUITE_CASE(plain_with_defaults),
                                           SUITE_CASE(several_hosts_and_a_path),
                                           SUITE_LOOP(wrong_ones, 8),
                                           {0}});
}
