#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/config.h"
#include "common/mem.h"
#include "tests/lib/suite.h"
#include "tests/unit/common/captured.h"

struct conf {
    int64_t port;
    int64_t web;
    bool sync;
    double ratio;
    const char *dirs;
    const char *none;
};

#define AT(member) offsetof(struct conf, member)
static const struct config_key keys[] = {
    {"bookiePort", CONFIG_INT, CONFIG_RESTART, AT(port), "3181", 0, 65535, "port of the protocol"},
    {"httpPort", CONFIG_PORT, CONFIG_RESTART, AT(web), "8000", 0, 65535, "port of HTTP"},
    {"journalSyncData", CONFIG_BOOL, CONFIG_LIVE, AT(sync), "true", 0, 0, "sync before answering"},
    {"diskUsageThreshold", CONFIG_DOUBLE, CONFIG_LIVE, AT(ratio), "0.95", 0, 1, "then read-only"},
    {"journalDirectories", CONFIG_STRING, CONFIG_RESTART, AT(dirs), "data/journal", 0, 0, "where"},
    {"advertisedAddress", CONFIG_STRING, CONFIG_RESTART, AT(none), NULL, 0, 0, "told to others"},
    {"gcWaitTime", CONFIG_INT, CONFIG_IGNORED, 0, "1000", 0, 0, "there is no such collector"},
    {"tlsEnabled", CONFIG_BOOL, CONFIG_REFUSED, 0, "false", 0, 0, "TLS is not given yet"},
    {"webSocketServiceEnabled", CONFIG_STRING, CONFIG_ABSENT, 0, "false", 0, 0, "no WebSocket"},
    {"pageLimit", CONFIG_STRING, CONFIG_IGNORED, 0, "-1", 0, 0, "there is no such collector"},
};
static const char *const aliases[] = {"journalDirectory", "journalDirectories", NULL};
static const struct config_table table = {keys, sizeof keys / sizeof *keys, aliases};

static struct conf conf;
static struct captured captured;

static void defaults(void)
{
    ck_assert_int_eq(config_defaults(&table, &conf), ERR_OK);
}

/* Loads a file of that text; *log is what it said. */
static enum err load(const char *text, const char **log)
{
    char path[] = "/tmp/config-XXXXXX";
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    capture_start(&captured);
    const enum err e = config_load_file(&table, &conf, path);
    *log = capture_end(&captured);
    unlink(path);
    return e;
}

static enum err set(const char *pair, const char **log)
{
    capture_start(&captured);
    const enum err e = config_set(&table, &conf, pair, "--set");
    *log = capture_end(&captured);
    return e;
}

static void expect_said(const char *log, const char *what)
{
    ck_assert_msg(strstr(log, what) != NULL, "no \"%s\" in: %s", what, log);
}

START_TEST(defaults_come_from_the_table)
{
    defaults();
    ck_assert_int_eq(conf.port, 3181);
    ck_assert(conf.sync);
    ck_assert(conf.ratio > 0.94 && conf.ratio < 0.96);
    ck_assert_str_eq(conf.dirs, "data/journal");
    ck_assert_ptr_null(conf.none);
    config_drop(&table, &conf);
    ck_assert_ptr_null(conf.dirs);
}
END_TEST

START_TEST(a_file_sets_what_it_names)
{
    const char *log;
    defaults();
    ck_assert_int_eq(load("# a comment\n\n  bookiePort = 1234 \r\njournalSyncData=False\n"
                          "journalDirectory=/a=b c\ndiskUsageThreshold=\nadvertisedAddress=x",
                          &log),
                     ERR_OK);
    ck_assert_str_eq(log, "");
    ck_assert_int_eq(conf.port, 1234);
    ck_assert(!conf.sync);
    ck_assert(conf.ratio > 0.94);
    ck_assert_str_eq(conf.dirs, "/a=b c");
    ck_assert_str_eq(conf.none, "x");
    config_drop(&table, &conf);
}
END_TEST

START_TEST(an_impossible_value_names_file_line_key_and_range)
{
    const char *log;
    defaults();
    ck_assert_int_eq(load("\nbookiePort=65536\njournalSyncData=maybe\nno equals\n"
                          "diskUsageThreshold=1.5\nbookiePort=12\n",
                          &log),
                     ERR_BAD_CONFIG);
    expect_said(log, ":2 key=bookiePort value=65536 reason=\"outside the allowed range\" "
                     "allowed=0..65535 ");
    expect_said(log, ":3 key=journalSyncData value=maybe reason=\"not true or false\" ");
    expect_said(log, ":4 value=\"no equals\" reason=\"not key=value\"");
    expect_said(log, ":5 key=diskUsageThreshold value=1.5 reason=\"outside the allowed range\" "
                     "allowed=0..1 ");
    ck_assert_int_eq(conf.port, 12);
    ck_assert_int_eq(load("bookiePort=12x", &log), ERR_BAD_CONFIG);
    expect_said(log, ":1 key=bookiePort value=12x reason=\"not a whole number\"");
    config_drop(&table, &conf);
}
END_TEST

START_TEST(an_unknown_key_is_a_warning_with_the_nearest)
{
    const char *log;
    defaults();
    ck_assert_int_eq(set("journalDirectorys=/x", &log), ERR_OK);
    expect_said(log, "WARN config.unknown where=--set key=journalDirectorys "
                     "nearest=journalDirectories");
    ck_assert_int_eq(set("bookieport=1", &log), ERR_OK);
    expect_said(log, "nearest=bookiePort");
    ck_assert_int_eq(set("zzz=1", &log), ERR_OK);
    expect_said(log, "nearest=- ");
    ck_assert_str_eq(conf.dirs, "data/journal");
    config_drop(&table, &conf);
}
END_TEST

START_TEST(a_promise_we_do_not_keep_stops_the_start)
{
    const char *log;
    defaults();
    ck_assert_int_eq(set("tlsEnabled=False", &log), ERR_OK);
    ck_assert_str_eq(log, "");
    ck_assert_int_eq(set("tlsEnabled=", &log), ERR_OK);
    ck_assert_int_eq(set("tlsEnabled=true", &log), ERR_BAD_CONFIG);
    expect_said(log, "config.refused where=--set key=tlsEnabled value=true "
                     "reason=\"TLS is not given yet\"");
    ck_assert_int_eq(set("gcWaitTime=1000.0", &log), ERR_OK);
    ck_assert_str_eq(log, "");
    ck_assert_int_eq(set("gcWaitTime=5", &log), ERR_OK);
    expect_said(log, "INFO config.ignored where=--set key=gcWaitTime");
    ck_assert_int_eq(set("webSocketServiceEnabled=FALSE", &log), ERR_OK);
    ck_assert_str_eq(log, "");
    ck_assert_int_eq(set("webSocketServiceEnabled=true", &log), ERR_OK);
    expect_said(log, "WARN config.ignored where=--set key=webSocketServiceEnabled value=true "
                     "reason=\"no WebSocket\"");
    config_drop(&table, &conf);
}
END_TEST

START_TEST(an_empty_value_is_the_default)
{
    const char *log;
    defaults();
    ck_assert_int_eq(set("bookiePort=1", &log), ERR_OK);
    ck_assert_int_eq(load("bookiePort=\njournalSyncData=\njournalDirectories=\nadvertisedAddress=\n"
                          "pageLimit=\n",
                          &log),
                     ERR_OK);
    ck_assert_str_eq(log, "");
    ck_assert_int_eq(conf.port, 3181);
    ck_assert(conf.sync);
    ck_assert_str_eq(conf.dirs, "data/journal");
    ck_assert_str_eq(conf.none, "");
    config_drop(&table, &conf);
}
END_TEST

START_TEST(an_empty_port_is_none)
{
    const char *log;
    defaults();
    ck_assert_int_eq(conf.web, 8000);
    ck_assert_int_eq(load("httpPort=\n", &log), ERR_OK);
    ck_assert_int_eq(conf.web, CONFIG_NO_PORT);
    ck_assert_int_eq(set("httpPort=0", &log), ERR_OK);
    ck_assert_int_eq(conf.web, 0);
    ck_assert_int_eq(set("httpPort=-1", &log), ERR_BAD_CONFIG);
    expect_said(log, "allowed=\"0..65535, or empty: none\"");
    ck_assert_int_eq(set("httpPort=all", &log), ERR_BAD_CONFIG);
    expect_said(log, "reason=\"not a port\"");
    ck_assert_int_eq(conf.web, 0);
    config_drop(&table, &conf);
}
END_TEST

START_TEST(the_environment_comes_over_the_file)
{
    const char *log;
    defaults();
    setenv("LGM_bookiePort", "77", 1);
    setenv("LGM_journalDirectories", "/from/env", 1);
    ck_assert_int_eq(load("bookiePort=1\n", &log), ERR_OK);
    ck_assert_int_eq(config_load_env(&table, &conf), ERR_OK);
    ck_assert_int_eq(conf.port, 77);
    ck_assert_str_eq(conf.dirs, "/from/env");
    setenv("LGM_bookiePort", "x", 1);
    capture_start(&captured);
    ck_assert_int_eq(config_load_env(&table, &conf), ERR_BAD_CONFIG);
    expect_said(capture_end(&captured), "where=\"the environment\" key=bookiePort value=x");
    unsetenv("LGM_bookiePort");
    unsetenv("LGM_journalDirectories");
    config_drop(&table, &conf);
}
END_TEST

START_TEST(a_file_that_is_not_there_is_named)
{
    defaults();
    capture_start(&captured);
    ck_assert_int_eq(config_load_file(&table, &conf, "/no/such.conf"), ERR_BAD_CONFIG);
    expect_said(capture_end(&captured), "config.refused where=/no/such.conf errno=ENOENT");
    config_drop(&table, &conf);
}
END_TEST

START_TEST(every_key_is_described)
{
    char text[8192] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    config_describe(&table, out);
    fclose(out);
    expect_said(text, "# port of the protocol\n# 0..65535; restart\nbookiePort=3181\n\n");
    expect_said(text, "# told to others\n# a text; restart\nadvertisedAddress=\n\n");
    expect_said(text, "# there is no such collector\n#   gcWaitTime=1000\n#   pageLimit=-1\n\n");
    out = fmemopen(text, sizeof text, "w");
    config_describe_markdown(&table, out);
    fclose(out);
    expect_said(text, "| `diskUsageThreshold` | `0.95` | 0..1 | live | then read-only |\n");
    expect_said(text, "| `advertisedAddress` |  | a text | restart | told to others |\n");
    expect_said(text, "| `tlsEnabled=false` | TLS is not given yet |\n");
    expect_said(text, "| `webSocketServiceEnabled=false` | no WebSocket |\n");
    expect_said(text, "| `gcWaitTime=1000`, `pageLimit=-1` | there is no such collector |\n");
}
END_TEST

int main(void)
{
    return suite_run("config", (suite_case[]){
                                   SUITE_CASE(defaults_come_from_the_table),
                                   SUITE_CASE(a_file_sets_what_it_names),
                                   SUITE_CASE(an_impossible_value_names_file_line_key_and_range),
                                   SUITE_CASE(an_unknown_key_is_a_warning_with_the_nearest),
                                   SUITE_CASE(a_promise_we_do_not_keep_stops_the_start),
                                   SUITE_CASE(an_empty_value_is_the_default),
                                   SUITE_CASE(an_empty_port_is_none),
                                   SUITE_CASE(the_environment_comes_over_the_file),
                                   SUITE_CASE(a_file_that_is_not_there_is_named),
                                   SUITE_CASE(every_key_is_described),
                                   {0},
                               });
}
