/* TLS, client certificates, users and passwords. */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "metadata/etcd.h"
#include "metadata/metadata.h"
#include "tests/lib/etcd.h"
#include "tests/lib/suite.h"
#include "tests/unit/common/certs.h"
#include "tests/unit/metadata/ask.h"
#include "tests/unit/metadata/conformance.h"
#include "tests/unit/metadata/listener.h"

#define is_err(call, e) ck_assert_str_eq(err_name((call).err), err_name(e))

static struct test_etcd etcd;
static struct certs certs, strangers;
static struct test_etcd_tls tls;

static void begin(void)
{
    certs_make(&certs);
    tls = (struct test_etcd_tls){.cert = certs.cert, .key = certs.key, .trust = certs.cert};
    ck_assert(test_etcd_start(&etcd, 1, &tls));
}

static void end(void)
{
    test_etcd_stop(&etcd);
    certs_remove(&certs);
}

static struct metadata *open_at(struct meta_etcd_conf conf, bool secure, const char *root)
{
    struct metadata *m = NULL;
    char url[128];

    snprintf(url, sizeof url, "etcd:%s://127.0.0.1:%u%s", secure ? "https" : "http",
             secure ? etcd.at[0].secure : etcd.at[0].client, root);
    conf.url = url;
    if (!conf.operation_timeout_us)
        conf.operation_timeout_us = 10000000;
    ck_assert_int_eq(meta_etcd_open(&m, &conf), ERR_OK);
    return m;
}

static struct metadata *open_with(struct meta_etcd_conf conf, bool secure)
{
    return open_at(conf, secure, "/t");
}

static struct meta_etcd_conf with_cert(void)
{
    return (struct meta_etcd_conf){
        .trust_file = certs.cert, .cert_file = certs.cert, .key_file = certs.key};
}

/* ---- TLS ------------------------------------------------------------------------------------ */

START_TEST(conforms_over_tls)
{
    begin();
    for (int i = 0; i < conformance_count(); i++) {
        char root[32];
        snprintf(root, sizeof root, "/case-%d", i);
        struct metadata *m = open_at(with_cert(), true, root);
        conformance_run(i, m);
        meta_close(&m);
    }
    end();
}
END_TEST

static void cannot_be_reached(struct meta_etcd_conf conf)
{
    conf.operation_timeout_us = 300000;
    struct metadata *m = open_with(conf, true);

    is_err(ask_get(m, "/k"), ERR_NOT_READY);
    is_err(ask_put(m, "/k", "v", META_ANY), ERR_NOT_READY);
    meta_close(&m);
}

START_TEST(strangers_are_not_trusted)
{
    struct meta_etcd_conf conf;

    begin();
    conf = with_cert();
    certs_make(&strangers);
    conf.trust_file = strangers.cert;
    cannot_be_reached(conf);
    conf = with_cert();
    conf.cert_file = conf.key_file = NULL;
    cannot_be_reached(conf);
    conf.cert_file = strangers.cert;
    conf.key_file = strangers.key;
    cannot_be_reached(conf);
    certs_remove(&strangers);
    end();
}
END_TEST

START_TEST(missing_files_are_refused)
{
    const struct meta_etcd_conf conf = {.url = "etcd:https://127.0.0.1:1",
                                        .trust_file = "/nowhere/trust.pem"};
    struct metadata *m = NULL;

    ck_assert_int_eq(meta_etcd_open(&m, &conf), ERR_BAD_CONFIG);
    ck_assert_ptr_null(m);
}
END_TEST

/* ---- users ---------------------------------------------------------------------------------- */

static void tell(const char *path, const char *json)
{
    char body[2048];

    ck_assert_msg(test_etcd_ask(etcd.at[0].client, path, json, body, sizeof body) == 200,
                  "%s %s: %s", path, json, body);
}

static void authorize(void)
{
    char body[2048], token[200] = "";

    ck_assert_int_eq(test_etcd_ask(etcd.at[0].client, "/v3/auth/authenticate",
                                   "{\"name\":\"root\",\"password\":\"r\"}", body, sizeof body),
                     200);
    const char *at = strstr(body, "\"token\":\"");
    ck_assert_ptr_nonnull(at);
    ck_assert_int_eq(sscanf(at, "\"token\":\"%199[^\"]", token), 1);
    test_etcd_authorize(token);
}

/* The role may touch what begins with "/t": keys and ends are base64. */
static void switch_users_on(void)
{
    tell("/v3/auth/user/add", "{\"name\":\"root\",\"password\":\"r\"}");
    tell("/v3/auth/role/add", "{\"name\":\"root\"}");
    tell("/v3/auth/user/grant", "{\"user\":\"root\",\"role\":\"root\"}");
    tell("/v3/auth/role/add", "{\"name\":\"lgm\"}");
    tell("/v3/auth/role/grant", "{\"name\":\"lgm\",\"perm\":{\"permType\":\"READWRITE\","
                                "\"key\":\"L3Q=\",\"range_end\":\"L3U=\"}}");
    tell("/v3/auth/user/add", "{\"name\":\"lgm\",\"password\":\"secret\"}");
    tell("/v3/auth/user/grant", "{\"user\":\"lgm\",\"role\":\"lgm\"}");
    tell("/v3/auth/user/add", "{\"name\":\"lgm test\",\"options\":{\"no_password\":true}}");
    tell("/v3/auth/user/grant", "{\"user\":\"lgm test\",\"role\":\"lgm\"}");
    tell("/v3/auth/enable", "{}");
    authorize();
}

static void everything_works(struct metadata *m)
{
    struct listener *l = listener_new(m, "/w/");

    is_err(ask_put(m, "/w/a", "1", META_ANY), ERR_OK);
    listener_await(l, "put /w/a=1");
    is_err(ask_hold(m, "/w/h", "2"), ERR_OK);
    listener_await(l, "put /w/h=2");
    is_err(ask_release(m, "/w/h"), ERR_OK);
    is_err(ask_remove(m, "/w/a", META_ANY), ERR_OK);
    is_err(ask_counter(m, "/n", 5), ERR_OK);
    listener_drop(&l);
}

/* The tokens that were given out are worth nothing after this. */
static void change_password(const char *password)
{
    char json[128];

    snprintf(json, sizeof json, "{\"name\":\"lgm\",\"password\":\"%s\"}", password);
    tell("/v3/auth/user/changepw", json);
}

static void tokens_are_renewed(struct metadata *m)
{
    struct listener *l = listener_new(m, "/w/");

    for (int i = 0; i < 3; i++) {
        char value[16], what[32];
        change_password("secret");
        snprintf(value, sizeof value, "%d", i);
        snprintf(what, sizeof what, "put /w/t=%d", i);
        is_err(ask_put(m, "/w/t", value, META_ANY), ERR_OK);
        listener_await(l, what);
    }
    listener_drop(&l);
}

static void wrong_passwords_are_refused(void)
{
    struct metadata *m =
        open_with((struct meta_etcd_conf){.user = "lgm", .password = "wrong"}, false);

    is_err(ask_get(m, "/k"), ERR_UNAUTHORIZED);
    is_err(ask_put(m, "/k", "v", META_ANY), ERR_UNAUTHORIZED);
    meta_close(&m);
    m = open_with((struct meta_etcd_conf){0}, false);
    is_err(ask_get(m, "/k"), ERR_UNAUTHORIZED);
    is_err(ask_put(m, "/k", "v", META_ANY), ERR_UNAUTHORIZED);
    meta_close(&m);
}

static void others_keys_are_forbidden(void)
{
    struct metadata *m = NULL;
    char url[64];

    snprintf(url, sizeof url, "etcd://127.0.0.1:%u/other", etcd.at[0].client);
    const struct meta_etcd_conf conf = {.url = url, .user = "lgm", .password = "secret"};
    ck_assert_int_eq(meta_etcd_open(&m, &conf), ERR_OK);
    is_err(ask_get(m, "/k"), ERR_FORBIDDEN);
    is_err(ask_put(m, "/k", "v", META_ANY), ERR_FORBIDDEN);
    is_err(ask_range(m, "/", NULL, 1, true), ERR_FORBIDDEN);
    is_err(ask_hold(m, "/k", "v"), ERR_FORBIDDEN);
    is_err(ask_counter(m, "/k", 1), ERR_FORBIDDEN);
    meta_close(&m);
}

START_TEST(users_are_known)
{
    const struct meta_etcd_conf user = {.user = "lgm", .password = "secret"};

    begin();
    struct metadata *m = open_with(user, false);
    everything_works(m); /* a user where none is asked for */
    switch_users_on();
    everything_works(m);
    tokens_are_renewed(m);
    meta_close(&m);
    m = open_with(user, false);
    everything_works(m);
    meta_close(&m);
    m = open_with(with_cert(), true); /* known by the certificate's name */
    everything_works(m);
    meta_close(&m);
    others_keys_are_forbidden();
    wrong_passwords_are_refused();
    end();
}
END_TEST

int main(void)
{
    if (!test_etcd_start(&etcd, 0, NULL))
        return test_etcd_skip();
    test_etcd_stop(&etcd);
    return suite_run("etcd_secure", (suite_case[]){SUITE_CASE(conforms_over_tls),
                                                   SUITE_CASE(strangers_are_not_trusted),
                                                   SUITE_CASE(missing_files_are_refused),
                                                   SUITE_CASE(users_are_known),
                                                   {0}});
}
