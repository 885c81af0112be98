/* A million topics are listed while one is published to: nobody waits for the list. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "metadata/metadata.h"
#include "tests/lib/suite.h"
#include "tests/unit/broker/admin/desk.h"
#include "tests/unit/broker/session/scene.h"

#define TOPIC "persistent://public/default/t"

/* Far above what one publish takes here, far below what the list does. */
enum { WAIT_MAX_US = 500 * 1000, AT_ONCE = META_OPS_MAX };

static unsigned topics(void)
{
    const char *wanted = getenv("LGM_TEST_TOPICS");
    return wanted ? (unsigned)strtoul(wanted, NULL, 10) : 1000000;
}

struct planting {
    struct meta_call call;
    unsigned next, end;
    atomic_bool done;
};

static void plant(struct planting *p)
{
    struct meta_op ops[AT_ONCE];
    char keys[AT_ONCE][64];
    size_t n = 0;

    for (; n < AT_ONCE && p->next < p->end; n++, p->next++) {
        snprintf(keys[n], sizeof(keys[n]), "/managed-ledgers/public/default/persistent/topic-%07u",
                 p->next);
        ops[n] = (struct meta_op){.kind = META_PUT, .key = keys[n], .expected = META_ABSENT};
    }
    if (n > 0)
        meta_txn(inn->meta, ops, n, &p->call);
    else
        atomic_store(&p->done, true);
}

static void planted(struct meta_call *c, const struct meta_reply *reply)
{
    ck_assert_int_eq(reply->err, ERR_OK);
    plant(container_of(c, struct planting, call));
}

static void plant_all(unsigned n)
{
    struct planting p = {.call = {.home = inn->loops.at[0], .done = planted}, .end = n};

    plant(&p);
    while (!atomic_load(&p.done))
        usleep(1000);
}

struct listing {
    atomic_bool done;
    bool fine;
    unsigned names;
};

static const char request[] = "GET /admin/v2/namespaces/public/default/topics HTTP/1.1\r\nHost: "
                              "x\r\nConnection: close\r\n\r\n";

/* Each name has one "//" and nothing else has; none of it is kept. */
static void *list(void *ctx)
{
    struct listing *l = ctx;
    char some[65536], last = 0;
    int fd = raw_socket(broker_web_port(inn->broker));

    l->fine = write(fd, request, sizeof(request) - 1) > 0;
    for (ssize_t n; (n = read(fd, some, sizeof(some))) > 0;) {
        for (ssize_t i = 0; i < n; last = some[i++])
            l->names += last == '/' && some[i] == '/';
    }
    close(fd);
    atomic_store(&l->done, true);
    return NULL;
}

static uint64_t publish_one(unsigned sequence)
{
    uint64_t at = loop_clock();

    raw_publish(r, 1, sequence, "m");
    return loop_clock() - at;
}

/* What it takes here when nothing is listed. */
static uint64_t longest_alone(unsigned *sent)
{
    uint64_t longest = 0;

    for (unsigned i = 0; i < 50; i++) {
        uint64_t took = publish_one((*sent)++);
        longest = took > longest ? took : longest;
    }
    return longest;
}

START_TEST(a_million_names_stop_no_publish)
{
    struct listing l = {0};
    pthread_t thread;
    uint64_t longest = 0, began, alone;
    unsigned n = topics(), sent = 0;

    begin();
    plant_all(n);
    raw_producer_ready(r, 1, TOPIC);
    alone = longest_alone(&sent);
    began = loop_clock();
    ck_assert_int_eq(pthread_create(&thread, NULL, list, &l), 0);
    while (!atomic_load(&l.done)) {
        uint64_t took = publish_one(sent++);
        longest = took > longest ? took : longest;
    }
    pthread_join(thread, NULL);
    printf("%u names in %llu ms; %u publishes meanwhile, the longest took %llu us; alone %llu us\n",
           l.names, (unsigned long long)(loop_clock() - began) / 1000, sent - 50,
           (unsigned long long)longest, (unsigned long long)alone);
    ck_assert(l.fine);
    ck_assert_uint_eq(l.names, n + 1); /* and the one that is published to */
    const char *slow = getenv("LGM_TEST_SLOW");
    ck_assert_uint_lt(longest, (uint64_t)WAIT_MAX_US * (slow ? strtoul(slow, NULL, 10) : 1));
    finish();
}
END_TEST

/* One who goes away in the middle of it leaves nothing behind. */
START_TEST(a_listener_may_leave)
{
    char some[1000];

    begin();
    plant_all(20000);
    for (unsigned i = 0; i < 8; i++) {
        int fd = raw_socket(broker_web_port(inn->broker));
        ck_assert_int_gt(write(fd, request, sizeof(request) - 1), 0);
        ck_assert_int_gt(read(fd, some, sizeof(some)), 0);
        close(fd);
    }
    ck_assert_int_eq(desk_ask(inn, "GET", "/admin/v2/tenants", NULL, NULL), 200);
    finish();
}
END_TEST

int main(void)
{
    return suite_run("listing", (suite_case[]){SUITE_SLOW(a_million_names_stop_no_publish, 300),
                                               SUITE_CASE(a_listener_may_leave),
                                               {0}});
}
