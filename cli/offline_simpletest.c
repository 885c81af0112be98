/* lgm bookie simpletest - a ledger over the bookies that live: made, written, read, deleted. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/offline.h"
#include "cli/offline_tell.h"
#include "cli/store.h"
#include "common/crc32c.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/parse.h"
#include "ledger/client.h"

enum { ANSWER_US = 5 * 1000 * 1000, LIST_US = 20 * 1000, LIST_TRIES = 250, ENTRIES_MAX = 10000 };
enum { SIZE = 1024 };

struct simpletest;

struct one_append {
    struct simpletest *test;
    struct ledger_append append;
};

struct simpletest {
    struct offline *o;
    struct loop *loop;
    struct ledger_client *client;
    struct ledger *ledger;
    int64_t id;
    struct quorum quorum;
    int64_t entries, written, read;
    struct one_append *appends;
    struct ledger_call call;
    struct ledger_read reading;
    struct timer timer;
    unsigned tries;
    bool differs;
    uint8_t payload[SIZE];
    enum err err;
};

/* ---- waiting --------------------------------------------------------------------------------- */

static void end(struct simpletest *t, enum err err)
{
    t->err = err;
    loop_stop(t->loop);
}

static enum err wait(struct simpletest *t)
{
    loop_run(t->loop);
    return t->err;
}

static void look_for_bookies(struct timer *timer)
{
    struct simpletest *t = container_of(timer, struct simpletest, timer);
    if (ledger_client_ready(t->client) && ledger_client_bookies(t->client) >= t->quorum.ensemble)
        end(t, ERR_OK);
    else if (++t->tries == LIST_TRIES)
        end(t, ERR_NOT_ENOUGH_BOOKIES);
    else
        loop_after(t->loop, &t->timer, LIST_US);
}

static void called(struct ledger_call *c, enum err err, struct ledger *l)
{
    struct simpletest *t = container_of(c, struct simpletest, call);
    if (l)
        t->ledger = l;
    end(t, err);
}

/* ---- its steps ------------------------------------------------------------------------------- */

static enum err find_bookies(struct simpletest *t)
{
    t->timer.run = look_for_bookies;
    loop_after(t->loop, &t->timer, 0);
    return wait(t);
}

static enum err make(struct simpletest *t)
{
    const struct ledger_tag tag = {"application", view_of("simpletest", strlen("simpletest"))};
    t->call = (struct ledger_call){.done = called};
    ledger_create(t->client, t->quorum, -1, &tag, 1, &t->call);
    TRY(wait(t));
    t->id = ledger_id(t->ledger);
    return ERR_OK;
}

static void appended(struct ledger_append *a, enum err err, entry_id id)
{
    struct simpletest *t = container_of(a, struct one_append, append)->test;
    chain_drop(&a->payload);
    (void)id;
    t->written++;
    if (err && !t->err)
        t->err = err;
    if (t->written == t->entries)
        loop_stop(t->loop);
}

static enum err write_all(struct simpletest *t)
{
    t->err = ERR_OK;
    for (int64_t i = 0; i < t->entries; i++) {
        struct one_append *one = &t->appends[i];
        memcpy(t->payload, &i, sizeof i);
        one->test = t;
        one->append.crc = crc32c(t->payload, SIZE);
        one->append.done = appended;
        chain_push(&one->append.payload, slice_copy(t->payload, SIZE));
        TRY(ledger_append(t->ledger, &one->append));
    }
    return wait(t);
}

static enum err close_it(struct simpletest *t)
{
    t->call = (struct ledger_call){.done = called};
    ledger_close(&t->ledger, &t->call);
    return wait(t);
}

static enum err open_it(struct simpletest *t)
{
    t->call = (struct ledger_call){.done = called};
    ledger_open(t->client, t->id, LEDGER_OPEN_READ, &t->call);
    return wait(t);
}

static void take_entry(struct ledger_read *r, entry_id id, struct slice payload)
{
    struct simpletest *t = container_of(r, struct simpletest, reading);
    memcpy(t->payload, &id, sizeof id);
    t->differs |= payload.len != SIZE || memcmp(payload.base, t->payload, SIZE) != 0;
    t->read++;
    slice_drop(&payload);
}

static void was_read(struct ledger_read *r, enum err err)
{
    end(container_of(r, struct simpletest, reading), err);
}

static enum err read_all(struct simpletest *t)
{
    TRY(open_it(t));
    t->reading = (struct ledger_read){
        .first = 0, .last = t->entries - 1, .entry = take_entry, .done = was_read};
    ledger_read(t->ledger, &t->reading);
    TRY(wait(t));
    return t->differs || t->read != t->entries ? ERR_CHECKSUM : ERR_OK;
}

/* What was made goes again, whatever happened in between. */
static enum err delete_it(struct simpletest *t)
{
    if (t->ledger)
        ledger_drop(&t->ledger);
    t->call = (struct ledger_call){.done = called};
    ledger_delete(t->client, t->id, &t->call);
    return wait(t);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static const struct step {
    const char *name;
    enum err (*run)(struct simpletest *t);
} steps[] = {{"find bookies", find_bookies},
             {"create", make},
             {"write", write_all},
             {"close", close_it},
             {"read", read_all}};

static int step_done(const struct simpletest *t, const char *name, uint64_t began, enum err err)
{
    offline_tell(t->o->json, "step", SAY_STR("name", name), SAY_I64("ledger", t->id),
                 SAY_U64("us", loop_clock() - began),
                 SAY_STR("result", err ? err_text(err) : "ok"));
    return err ? EXIT_FAILED : EXIT_DONE;
}

static int run(struct simpletest *t)
{
    const struct ledger_client_conf conf = {.add_timeout_us = ANSWER_US,
                                            .read_timeout_us = ANSWER_US};
    int code = EXIT_DONE;
    t->loop = loop_new("simpletest");
    t->client = ledger_client_new(t->loop, t->o->meta, &conf);
    for (unsigned i = 0; i < sizeof steps / sizeof steps[0] && code == EXIT_DONE; i++) {
        const uint64_t began = loop_clock();
        const enum err err = steps[i].run(t);
        code = step_done(t, steps[i].name, began, err);
    }
    if (t->id >= 0) {
        const uint64_t began = loop_clock();
        const int deleted = step_done(t, "delete", began, delete_it(t));
        code = code == EXIT_DONE ? deleted : code;
    }
    ledger_client_drop(&t->client);
    loop_drop(&t->loop);
    return code;
}

/* [ENSEMBLE [WRITE [ACK [ENTRIES]]]], as far as they are given. */
static bool take_words(struct simpletest *t)
{
    uint64_t n[4] = {1, 0, 0, 100};
    for (unsigned i = 0; i < t->o->n_words; i++)
        if (i == 4 || parse_u64(t->o->words[i], &n[i]) || n[i] == 0 || n[i] > ENTRIES_MAX)
            return false;
    n[1] = n[1] ? n[1] : n[0];
    n[2] = n[2] ? n[2] : n[1];
    t->quorum = (struct quorum){(unsigned)n[0], (unsigned)n[1], (unsigned)n[2]};
    t->entries = (int64_t)n[3];
    return quorum_valid(t->quorum);
}

int offline_simpletest(struct offline *o)
{
    struct simpletest *t = mem_new(struct simpletest);
    t->o = o;
    t->id = -1;
    int code = EXIT_DONE;
    if (!take_words(t))
        code = usage_error("bookie", "simpletest takes ENSEMBLE WRITE ACK ENTRIES, all from 1 on");
    if (code == EXIT_DONE)
        code = cli_store_open("bookie", o->url ? o->url : o->conf.metadata_service_uri, &o->etcd,
                              &o->meta);
    if (code == EXIT_DONE) {
        t->appends = mem_alloc((size_t)t->entries * sizeof t->appends[0]);
        memset(t->appends, 0, (size_t)t->entries * sizeof t->appends[0]);
        code = run(t);
        mem_free(t->appends);
    }
    mem_free(t);
    return code;
}
