#include "bookie/registration.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "metadata/paths.h"
#include "metadata/wait.h"
#include "tests/lib/suite.h"
#include "tests/unit/common/captured.h"

/* Two sessions of one store: ours, and whoever was there before. */
static struct metadata *meta;
static struct loops loops;
static struct registration *registration;
static struct bookie_record record = {.host = (char *)(uintptr_t) "h1", .port = 3181};

static void begin(void)
{
    ck_assert_int_eq(meta_memory_open(&meta), ERR_OK);
    loops_start(&loops, "io", 1);
}

static void end(void)
{
    registration_close(&registration);
    meta_close(&meta);
    loops_stop(&loops);
}

static bool is_there(bool read_only)
{
    struct slice value = {0};
    char key[META_KEY_MAX];
    int64_t version;
    ck_assert_int_eq(path_bookie("b1", read_only, key), ERR_OK);
    const enum err err = meta_get_wait(meta, key, &value, &version);
    slice_drop(&value);
    return err == ERR_OK;
}

struct question {
    bool held;
};

static void ask_held(void *ctx)
{
    struct question *q = ctx;
    q->held = registration_is_held(registration);
}

static bool is_held(void)
{
    struct question q;
    loop_call(loops.at[0], ask_held, &q);
    return q.held;
}

static void open_it(bool read_only)
{
    ck_assert_int_eq(registration_open(&registration, meta, loops.at[0], "b1", &record, read_only),
                     ERR_OK);
}

struct counting {
    struct meta_wait wait;
    size_t keys;
};

static void count(struct meta_wait *w, const struct meta_reply *r)
{
    container_of(w, struct counting, wait)->keys = r->count;
}

/* Both sides at one moment. */
static size_t sides(void)
{
    struct counting c = {0};
    meta_wait_begin(&c.wait);
    c.wait.look = count;
    meta_range(meta, PATH_BOOKIES, NULL, 10, true, &c.wait.call);
    ck_assert_int_eq(meta_wait_end(&c.wait), ERR_OK);
    return c.keys;
}

static void wait_for(bool writable, bool read_only)
{
    while (is_there(false) != writable || is_there(true) != read_only)
        sched_yield();
}

START_TEST(it_is_there_until_it_is_closed)
{
    begin();
    open_it(false);
    ck_assert(is_held());
    ck_assert(is_there(false) && !is_there(true));
    registration_close(&registration);
    ck_assert(!is_there(false) && !is_there(true));
    end();
}
END_TEST

START_TEST(it_changes_sides_and_is_always_somewhere)
{
    begin();
    open_it(true);
    ck_assert(is_there(true) && !is_there(false));
    registration_set(registration, false);
    wait_for(true, false);
    registration_set(registration, true);
    wait_for(false, true);
    ck_assert(is_held());
    for (unsigned i = 0; i < 101; i++) {
        registration_set(registration, i % 2);
        ck_assert_uint_ge(sides(), 1);
    }
    wait_for(true, false);
    end();
}
END_TEST

static void somebody_registers(uint16_t port)
{
    const struct bookie_record other = {.host = record.host, .port = port};
    char key[META_KEY_MAX];
    ck_assert_int_eq(path_bookie("b1", false, key), ERR_OK);
    ck_assert_int_eq(meta_put_wait(meta, key, bookie_record_write("b1", &other), META_ABSENT),
                     ERR_OK);
}

START_TEST(what_a_killed_life_left_is_taken_over)
{
    begin();
    somebody_registers(record.port);
    open_it(false);
    ck_assert(is_held());
    registration_close(&registration);
    ck_assert(!is_there(false));
    end();
}
END_TEST

static void *opens(void *ctx)
{
    (void)ctx;
    open_it(false);
    return NULL;
}

static bool has_said(struct captured *c, const char *what)
{
    const ssize_t n = pread(fileno(c->file), c->text, sizeof c->text - 1, 0);
    c->text[n > 0 ? n : 0] = '\0';
    return strstr(c->text, what) != NULL;
}

START_TEST(who_is_at_another_address_is_waited_for)
{
    static struct captured said;
    pthread_t opener;
    struct meta_wait gone;
    char key[META_KEY_MAX];
    begin();
    somebody_registers((uint16_t)(record.port + 1));
    capture_start(&said);
    ck_assert_int_eq(pthread_create(&opener, NULL, opens, NULL), 0);
    while (!has_said(&said, "bookie.registration_failed"))
        sched_yield();
    ck_assert(is_there(false));
    ck_assert_int_eq(path_bookie("b1", false, key), ERR_OK);
    meta_wait_begin(&gone);
    meta_remove(meta, key, META_ANY, &gone.call);
    ck_assert_int_eq(meta_wait_end(&gone), ERR_OK);
    pthread_join(opener, NULL);
    capture_end(&said);
    ck_assert(is_held());
    end();
}
END_TEST

int main(void)
{
    return suite_run("registration", (suite_case[]){
                                         SUITE_CASE(it_is_there_until_it_is_closed),
                                         SUITE_CASE(it_changes_sides_and_is_always_somewhere),
                                         SUITE_CASE(what_a_killed_life_left_is_taken_over),
                                         SUITE_CASE(who_is_at_another_address_is_waited_for),
                                         {0},
                                     });
}
