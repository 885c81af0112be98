#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <regex.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "tests/lib/suite.h"
#include "tests/unit/common/captured.h"

static struct captured captured;

static void expect_match(const char *text, const char *pattern)
{
    regex_t r;
    ck_assert_int_eq(regcomp(&r, pattern, REG_EXTENDED | REG_NOSUB), 0);
    ck_assert_msg(regexec(&r, text, 0, NULL, 0) == 0, "%s does not match %s", text, pattern);
    regfree(&r);
}

START_TEST(a_line_is_time_level_name_and_fields)
{
    capture_start(&captured);
    log_event(LOG_WARN, "ledger.failed", F_I64("ledger", -12), F_ERR(ERR_TIMEOUT),
              F_U64("big", UINT64_MAX), F_F64("ratio", 0.5), F_ERRNO(ENOSPC), F_STR("none", NULL));
    log_event(LOG_INFO, "nothing.added");
    const char *text = capture_end(&captured);
    expect_match(text, "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{3}Z WARN ledger.failed "
                       "ledger=-12 err=TIMEOUT big=18446744073709551615 ratio=0.5 errno=ENOSPC "
                       "none=- thread=log_test\n.* INFO nothing.added thread=log_test\n$");
}
END_TEST

START_TEST(a_value_cannot_break_a_line_or_forge_a_field)
{
    capture_start(&captured);
    log_event(LOG_WARN, "x.y", F_STR("a", "two words"), F_STR("b", "x\nWARN forged z=1"),
              F_STR("c", "say \"hi\" \\"), F_STR("d", "tab\there\x01"), F_STR("e", ""),
              F_STR("f", "\xff\xc3\xa9"), F_STR("g", "a=b"));
    const char *text = capture_end(&captured);
    ck_assert_ptr_nonnull(strstr(text, " a=\"two words\" b=\"x\\nWARN forged z=1\" "));
    ck_assert_ptr_nonnull(
        strstr(text, " c=\"say \\\"hi\\\" \\\\\" d=\"tab\\x09here\\x01\" e=\"\" "));
    ck_assert_ptr_nonnull(strstr(text, " f=\"\\xff\xc3\xa9\" g=\"a=b\" "));
    ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
}
END_TEST

START_TEST(levels_hide)
{
    enum log_level level;
    capture_start(&captured);
    log_event(LOG_DEBUG, "a.hidden");
    ck_assert(log_level_of("Error", &level));
    log_set_level(level);
    log_event(LOG_WARN, "b.hidden");
    ck_assert(log_level_of("debug", &level));
    log_set_level(level);
    log_event(LOG_DEBUG, "c.shown");
    ck_assert(!log_level_of("loud", &level));
    const char *text = capture_end(&captured);
    ck_assert_ptr_null(strstr(text, "hidden"));
    ck_assert_ptr_nonnull(strstr(text, " DEBUG c.shown "));
}
END_TEST

static struct json_object *member(struct json_object *o, const char *key)
{
    struct json_object *v = NULL;
    ck_assert_msg(json_object_object_get_ex(o, key, &v), "no %s", key);
    return v;
}

START_TEST(json_lines_are_json)
{
    log_set_json(true);
    capture_start(&captured);
    log_event(LOG_ERROR, "x.y", F_STR("s", "q\" \\ \n \x01 \xff \xf0\x9f\x98\x80 \xed\xa0\x80"),
              F_I64("i", -1), F_U64("u", UINT64_MAX), F_F64("nan", (double)NAN), F_ERRNO(EIO),
              F_STR("none", NULL));
    const char *text = capture_end(&captured);
    struct json_object *o = json_tokener_parse(text);
    ck_assert_ptr_nonnull(o);
    ck_assert_str_eq(json_object_get_string(member(o, "event")), "x.y");
    ck_assert_str_eq(json_object_get_string(member(o, "level")), "ERROR");
    ck_assert_str_eq(json_object_get_string(member(o, "s")),
                     "q\" \\ \n \x01 \xef\xbf\xbd \xf0\x9f\x98\x80 "
                     "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    ck_assert_uint_eq(json_object_get_uint64(member(o, "u")), UINT64_MAX);
    ck_assert_str_eq(json_object_get_string(member(o, "errno")), "EIO");
    ck_assert_ptr_null(member(o, "nan"));
    ck_assert_ptr_null(member(o, "none"));
    json_object_put(o);
}
END_TEST

/* However much is said, a line ends, and as JSON it parses. */
START_TEST(long_values_are_cut)
{
    char *long_text = mem_alloc(100001), *spaced = mem_alloc(100001);
    memset(long_text, 'x', 100000);
    memset(spaced, '\x01', 100000);
    for (int json = 0; json < 2; json++) {
        log_set_json(json);
        capture_start(&captured);
        log_event(LOG_ERROR, "x.y", F_STR("a", long_text), F_STR("b", spaced),
                  F_STR("c", long_text), F_STR("d", spaced), F_STR("e", long_text),
                  F_STR("f", spaced), F_STR("g", spaced), F_STR("h", spaced), F_I64("i", 1));
        const char *text = capture_end(&captured);
        ck_assert_uint_lt(strlen(text), 8193);
        ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
        ck_assert_ptr_nonnull(strstr(text, "xxx...\""));
        if (json) {
            struct json_object *o = json_tokener_parse(text);
            ck_assert_ptr_nonnull(o);
            json_object_put(o);
        }
    }
    mem_free(long_text);
    mem_free(spaced);
}
END_TEST

int main(void)
{
    return suite_run("log", (suite_case[]){
                                SUITE_CASE(a_line_is_time_level_name_and_fields),
                                SUITE_CASE(a_value_cannot_break_a_line_or_forge_a_field),
                                SUITE_CASE(levels_hide),
                                SUITE_CASE(json_lines_are_json),
                                SUITE_CASE(long_values_are_cut),
                                {0},
                            });
}
