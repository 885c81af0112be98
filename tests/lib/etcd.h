/* etcd.h - an etcd of the test's own: its processes, on free ports, with its data in memory.
 *
 *   struct test_etcd t;
 *   if (!test_etcd_start(&t, 3, NULL)) return test_etcd_skip();
 *   ... test_etcd_url(&t, "/root", url, sizeof url) ... test_etcd_kill(&t, 0) ...
 *   test_etcd_stop(&t);
 *
 * The processes die with the thread that started them at the latest.
 * Threads: the test's main one.
 */
#ifndef TESTS_LIB_ETCD_H
#define TESTS_LIB_ETCD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { TEST_ETCD_MAX = 3 };

struct test_etcd_tls {
    const char *cert, *key, *trust; /* clients must show a certificate that trust vouches for */
};

struct test_etcd {
    unsigned n;
    char dir[64];
    const struct test_etcd_tls *tls;
    struct {
        pid_t pid; /* 0: not running */
        uint16_t client, peer;
        uint16_t secure; /* with tls: a second port for clients */
    } at[TEST_ETCD_MAX];
};

bool test_etcd_start(struct test_etcd *t, unsigned nodes, const struct test_etcd_tls *tls);
int test_etcd_skip(void); /* says why there is no test: the result of main() */
void test_etcd_stop(struct test_etcd *t);

void test_etcd_url(const struct test_etcd *t, const char *root, char *into, size_t len);
void test_etcd_kill(struct test_etcd *t, unsigned i);      /* -9, and gone when it returns */
void test_etcd_terminate(struct test_etcd *t, unsigned i); /* politely, and gone */
void test_etcd_run(struct test_etcd *t, unsigned i);       /* again, with its data */
void test_etcd_empty(struct test_etcd *t); /* all nodes again, the same cluster without its data */
void test_etcd_freeze(const struct test_etcd *t, unsigned i);
void test_etcd_thaw(const struct test_etcd *t, unsigned i);
int test_etcd_leader(const struct test_etcd *t);             /* waits until there is one */
void test_etcd_await(const struct test_etcd *t, unsigned i); /* until it answers */
/* Etcd's JSON interface: the status, 0 without an answer; the body in `into`. */
int test_etcd_ask(uint16_t port, const char *path, const char *json, char *into, size_t len);
/* What later questions carry: a token of /v3/auth/authenticate. */
void test_etcd_authorize(const char *token);
/* The number behind "name": in a body, or 0. */
uint64_t test_etcd_number(const char *body, const char *name);

#endif
