/* The parts of the etcd store that need no etcd: addresses, keys, messages, turns. */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "metadata/etcd_cutter.h"
#include "metadata/etcd_keys.h"
#include "metadata/etcd_order.h"
#include "metadata/etcd_url.h"
#include "metadata/open.h"
#include "tests/lib/suite.h"

/* ---- addresses ------------------------------------------------------------------------------ */

static const char *read_as_text(const char *text)
{
    static char out[512];
    struct etcd_url u;
    const char *why;
    size_t n;

    if (etcd_url_read(text, &u, &why)) {
        snprintf(out, sizeof out, "refused: %s", why);
        return out;
    }
    n = (size_t)snprintf(out, sizeof out, "%s", u.tls ? "tls" : "plain");
    for (unsigned i = 0; i < u.n; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, " %s:%u", u.at[i].host, u.at[i].port);
    snprintf(out + n, sizeof out - n, " root=%s", u.root);
    etcd_url_drop(&u);
    return out;
}

static const struct {
    const char *text, *means;
} urls[] = {
    {"etcd:http://h1:2379,http://h2:2380", "plain h1:2379 h2:2380 root="},
    {"etcd:http://h1:2379,http://h2:2380/root", "plain h1:2379 h2:2380 root=/root"},
    {"etcd:http://h1/a/b/", "plain h1:2379 root=/a/b"},
    {"etcd:https://h1:1,https://h2", "tls h1:1 h2:2379 root="},
    {"etcd:https://h1:1,h2:2", "tls h1:1 h2:2 root="},
    {"etcd://h1:2379,h2:2379", "plain h1:2379 h2:2379 root="},
    {"etcd://h1,h2/root", "plain h1:2379 h2:2379 root=/root"},
    {"etcd:h1", "plain h1:2379 root="},
    {"etcd:http://[::1]:99,http://[::2]", "plain ::1:99 ::2:2379 root="},
    {"metadata-store:etcd:http://h1:2379;http://h2:2379", "plain h1:2379 h2:2379 root="},
    {"metadata-store:etcd:http://h1:2379/ledgers", "plain h1:2379 root="},
    {"metadata-store:etcd:http://h1:2379/other", "plain h1:2379 root=/other"},
    {"etcd:http://h1:2379/ledgers", "plain h1:2379 root=/ledgers"},
    {"etcd:", "refused: not host:port"},
    {"etcd:http://", "refused: not host:port"},
    {"etcd:http://h1:port", "refused: not host:port"},
    {"etcd:http://h1:70000", "refused: not host:port"},
    {"etcd:http://h1,", "refused: not host:port"},
    {"etcd:http://h1,https://h2", "refused: http and https mixed"},
    {"etcd:http://h1/root,http://h2", "refused: a root before the last node"},
    {"etcd:a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", "refused: too many nodes"},
    {"zk:h1", "refused: does not begin with etcd:"},
};

START_TEST(addresses_are_read)
{
    ck_assert_str_eq(read_as_text(urls[_i].text), urls[_i].means);
}
END_TEST

START_TEST(stores_are_chosen_by_scheme)
{
    static const char *refused[] = {
        "", "zk:localhost:2181", "memory", "rocksdb:", "etcd", "etcd:http://"};
    struct metadata *m = NULL;

    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        ck_assert_int_eq(meta_open(&m, refused[i], NULL), ERR_BAD_CONFIG);
    ck_assert_int_eq(meta_open(&m, "memory:", NULL), ERR_OK);
    meta_close(&m);
    ck_assert_int_eq(meta_open(&m, "metadata-store:memory:", NULL), ERR_OK);
    meta_close(&m);
    ck_assert_int_eq(meta_open(&m, "etcd:http://127.0.0.1:1", NULL), ERR_OK); /* does not wait */
    meta_close(&m);
}
END_TEST

/* ---- keys ----------------------------------------------------------------------------------- */

static void span_is(struct etcd_span s, const char *from, size_t from_len, const char *to,
                    size_t to_len)
{
    ck_assert_mem_eq(s.from, from, from_len);
    ck_assert_uint_eq(s.from_len, from_len);
    ck_assert_mem_eq(s.to, to, to_len);
    ck_assert_uint_eq(s.to_len, to_len);
    etcd_span_drop(&s);
}

START_TEST(prefixes_are_spans)
{
    span_is(etcd_span_of("", "/a/", NULL), "/a/", 3, "/a0", 3);
    span_is(etcd_span_of("/r", "/a", NULL), "/r/a", 4, "/r/b", 4);
    span_is(etcd_span_of("", "/a/", "/a/k"), "/a/k\0", 5, "/a0", 3);
    span_is(etcd_span_of("", "/a/", "/0"), "/a/", 3, "/a0", 3);
    span_is(etcd_span_of("", "/a/", "/z"), "/z\0", 3, "/a0", 3);
    span_is(etcd_span_of("", "", NULL), "\0", 1, "\0", 1);
    span_is(etcd_span_of("", "a\xff\xff", NULL), "a\xff\xff", 3, "b", 1);
    span_is(etcd_span_of("", "\xff", NULL), "\xff", 1, "\0", 1);
}
END_TEST

START_TEST(keys_lose_their_root)
{
    char *key = etcd_key_shown("/r", view_of("/r/a", 4));

    ck_assert_str_eq(key, "/a");
    mem_free(key);
    ck_assert_ptr_null(etcd_key_shown("/r", view_of("/r", 2)));
    ck_assert_ptr_null(etcd_key_shown("/r", view_of("/q/a", 4)));
    ck_assert_ptr_null(etcd_key_shown("", view_of("a\0b", 3)));
}
END_TEST

/* ---- messages ------------------------------------------------------------------------------- */

/* Three messages, in pieces of each size. */
START_TEST(messages_are_cut)
{
    static const char bytes[] = "\0\0\0\0\3one\0\0\0\0\0\0\0\0\0\5three";
    static const char *means[] = {"one", "", "three"};
    const size_t len = sizeof bytes - 1, step = (size_t)_i + 1;
    struct etcd_cutter c = {.max = 5};
    unsigned n = 0;

    for (size_t at = 0; at < len; at += step) {
        struct view part = view_of(bytes + at, len - at < step ? len - at : step), message;
        enum err e;
        while (!(e = etcd_cut(&c, &part, &message))) {
            ck_assert_uint_eq(message.len, strlen(means[n]));
            ck_assert_mem_eq(message.base, means[n], message.len);
            n++;
        }
        ck_assert_int_eq(e, ERR_END);
    }
    ck_assert_uint_eq(n, 3);
    etcd_cutter_drop(&c);
}
END_TEST

START_TEST(bad_messages_are_refused)
{
    struct etcd_cutter c = {.max = 10};
    struct view bytes = view_of("\1\0\0\0\1x", 6), message;

    ck_assert_int_eq(etcd_cut(&c, &bytes, &message), ERR_MALFORMED);
    etcd_cutter_drop(&c);
    bytes = view_of("\0\0\0\0\x0b", 5);
    ck_assert_int_eq(etcd_cut(&c, &bytes, &message), ERR_TOO_BIG);
    etcd_cutter_drop(&c);
    bytes = view_of("\0\xff\xff\xff\xff", 5);
    ck_assert_int_eq(etcd_cut(&c, &bytes, &message), ERR_TOO_BIG);
    etcd_cutter_drop(&c);
}
END_TEST

/* ---- turns ---------------------------------------------------------------------------------- */

struct actor {
    struct turn turn;
    struct claim claims[3];
    char name;
};

static struct order order;
static char story[256];
static struct actor actors[26];

static void tell(const char *what, char name)
{
    size_t n = strlen(story);

    snprintf(story + n, sizeof story - n, "%s%c ", what, name);
}

static void on_ready(struct turn *t)
{
    tell("", container_of(t, struct actor, turn)->name);
}

/* "w:k1,k2" writes, "r:k" reads, "l:p" lists. */
static void enter(char name, const char *what)
{
    static char texts[26][32];
    struct actor *a = &actors[name - 'a'];
    char *text = texts[name - 'a'];

    *a = (struct actor){.name = name};
    a->turn.claims = a->claims;
    snprintf(text, sizeof texts[0], "%s", what + 2);
    if (*what == 'l')
        a->turn.prefix = text;
    for (char *key = strtok(text, ","); key && *what != 'l'; key = strtok(NULL, ","))
        a->claims[a->turn.n++] = (struct claim){.key = key, .writes = *what == 'w'};
    if (order_enter(&order, &a->turn))
        tell("", name);
    else
        tell("-", name);
}

static void leave(char name)
{
    tell(".", name);
    order_leave(&order, &actors[name - 'a'].turn);
}

START_TEST(writes_of_a_key_take_turns)
{
    order_init(&order, on_ready);
    enter('a', "w:/k");
    enter('b', "w:/k");
    enter('c', "w:/other");
    enter('d', "r:/k");
    enter('e', "r:/k");
    enter('f', "w:/k");
    enter('g', "r:/k");
    leave('a');
    leave('b');
    leave('e');
    leave('d');
    leave('c');
    leave('f');
    leave('g');
    ck_assert_str_eq(story, "a -b c -d -e -f -g .a b .b d e .e .d f .c .f g .g ");
    ck_assert_ptr_null(order.lanes);
}
END_TEST

START_TEST(several_keys_wait_for_all)
{
    order_init(&order, on_ready);
    enter('a', "w:/1");
    enter('b', "w:/2");
    enter('c', "w:/1,/2,/3");
    enter('d', "w:/3");
    enter('e', "r:/2");
    leave('b');
    leave('a');
    leave('c');
    leave('e');
    leave('d');
    ck_assert_str_eq(story, "a b -c -d -e .b .a c .c e d .e .d ");
    ck_assert_ptr_null(order.lanes);
}
END_TEST

START_TEST(lists_and_writes_do_not_pass_each_other)
{
    order_init(&order, on_ready);
    enter('a', "w:/p/1");
    enter('b', "r:/p/2");
    enter('c', "w:/q/1");
    enter('d', "l:/p/");
    enter('e', "l:/q/2");
    enter('f', "w:/p/3");
    enter('g', "r:/p/3");
    enter('h', "w:/q/3");
    enter('i', "l:");
    leave('a');
    leave('d');
    leave('f');
    leave('c');
    leave('h');
    leave('i');
    ck_assert_str_eq(story, "a b c -d e -f -g h -i .a d .d f .f g .c .h i .i ");
    leave('b');
    leave('e');
    leave('g');
    ck_assert_ptr_null(order.lanes);
}
END_TEST

int main(void)
{
    return suite_run("etcd_parts",
                     (suite_case[]){SUITE_LOOP(addresses_are_read, sizeof urls / sizeof *urls),
                                    SUITE_CASE(stores_are_chosen_by_scheme),
                                    SUITE_CASE(prefixes_are_spans),
                                    SUITE_CASE(keys_lose_their_root),
                                    SUITE_LOOP(messages_are_cut, 23),
                                    SUITE_CASE(bad_messages_are_refused),
                                    SUITE_CASE(writes_of_a_key_take_turns),
                                    SUITE_CASE(several_keys_wait_for_all),
                                    SUITE_CASE(lists_and_writes_do_not_pass_each_other),
                                    {0}});
}
