/* lgm ledger - looking into one ledger, and going on when a part of it is gone for good. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/store.h"
#include "common/crc32c.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/parse.h"
#include "ledger/repair.h"
#include "ledger/salvage.h"
#include "metadata/paths.h"
#include "metadata/records.h"
#include "proto/frame.h"
#include "proto/pulsar.pb-c.h"

enum { ANSWER_US = 5 * 1000 * 1000, LIST_US = 20 * 1000, LIST_TRIES = 250, RANGES_MAX = 20 };

struct ledger_command {
    const char *url;
    struct meta_etcd_conf etcd;
    bool yes;
    int64_t id;
    struct metadata *m;
    struct loop *loop;
    struct ledger_client *client;
    struct salvage *salvage;
    struct mark_record here; /* bookies that are registered */
    struct timer timer;
    struct ledger_call open;
    unsigned tries;
    enum err err;
};

static const char help[] =
    "usage: lgm ledger inspect LEDGER --metadata URL\n"
    "       lgm ledger recover LEDGER --metadata URL\n"
    "       lgm ledger force-close LEDGER --metadata URL [--yes]\n"
    "       lgm ledger skip LEDGER --metadata URL [--yes]\n\n"
    "inspect      asks every bookie for every entry, and tells what is lacking; changes nothing\n"
    "recover      fences its writer, finds its end and closes it there, as a broker does; nothing\n"
    "             is given up, and it fails when too few bookies answer\n"
    "force-close  closes a ledger that cannot be recovered, at the last entry up to which all can\n"
    "             be read.  What is behind it is GIVEN UP\n"
    "skip         entries of a closed ledger that nobody has are GIVEN UP: a marker takes their\n"
    "             place, which consumers do not get, so that they pass\n\n"
    "The last two print what is given up and ask, unless --yes.  Bring bookies back first: what\n"
    "they have is given up too.  skip needs live bookies in the place of those that are "
    "gone.\n\n" STORE_HELP "  --yes                  do not ask\n\n"
    "Example: lgm ledger inspect 4294967312 --metadata etcd://m1:2379\n";

static int fail(const struct ledger_command *c, enum err err)
{
    fprintf(stderr, "lgm ledger: %" PRId64 ": %s\n", c->id, err_text(err));
    return EXIT_FAILED;
}

/* ---- calls that are waited for --------------------------------------------------------------- */

static void answered(void *ctx, enum err err)
{
    struct ledger_command *c = ctx;

    c->err = err;
    loop_stop(c->loop);
}

static enum err wait(struct ledger_command *c)
{
    loop_run(c->loop);
    return c->err;
}

static void look_for_bookies(struct timer *t)
{
    struct ledger_command *c = container_of(t, struct ledger_command, timer);

    if (ledger_client_ready(c->client))
        answered(c, ERR_OK);
    else if (++c->tries == LIST_TRIES)
        answered(c, ERR_TIMEOUT);
    else
        loop_after(c->loop, &c->timer, LIST_US);
}

static void note_bookie(void *ctx, const struct meta_item *item)
{
    struct ledger_command *c = ctx;

    mark_record_add(&c->here, strrchr(item->key, '/') + 1);
}

static enum err connect(struct ledger_command *c)
{
    const struct ledger_client_conf conf = {.add_timeout_us = ANSWER_US,
                                            .read_timeout_us = ANSWER_US};

    TRY(store_scan(c->m, PATH_BOOKIES, true, note_bookie, c));
    c->loop = loop_new("ledger");
    c->client = ledger_client_new(c->loop, c->m, &conf);
    c->salvage = salvage_new(c->client, c->id, answered, c);
    c->timer.run = look_for_bookies;
    loop_after(c->loop, &c->timer, 0);
    return wait(c);
}

static enum err survey(struct ledger_command *c, bool fence)
{
    salvage_survey(c->salvage, fence);
    return wait(c);
}

/* ---- inspect --------------------------------------------------------------------------------- */

static const char *state_name(enum ledger_state s)
{
    return s == LEDGER_OPEN ? "open" : s == LEDGER_IN_RECOVERY ? "in recovery" : "closed";
}

static entry_id end_of(const struct ledger_command *c, unsigned fragment)
{
    const struct salvage_facts *f = salvage_facts(c->salvage);
    const char *members[ENSEMBLE_MAX];

    return fragment + 1 < f->fragments ? salvage_fragment(c->salvage, fragment + 1, members) - 1
                                       : f->n - 1;
}

static void print_member(const struct salvage_facts *f, const char *name, unsigned slot,
                         entry_id first, entry_id last)
{
    uint64_t should = 0, has = 0, denied = 0;

    for (entry_id e = first; e <= last; e++) {
        if (!(quorum_write_set(f->ledger.quorum, e) & 1u << slot))
            continue;
        should++;
        has += f->at[e].here >> slot & 1;
        denied += f->at[e].denied >> slot & 1;
    }
    printf("    %s has %" PRIu64 " of %" PRIu64, name, has, should);
    if (denied)
        printf(", lacks %" PRIu64, denied);
    if (has + denied < should)
        printf(", no answer or damaged: %" PRIu64, should - has - denied);
    puts("");
}

static void print_fragments(const struct ledger_command *c)
{
    const struct salvage_facts *f = salvage_facts(c->salvage);
    const char *members[ENSEMBLE_MAX];

    for (unsigned i = 0; i < f->fragments; i++) {
        entry_id first = salvage_fragment(c->salvage, i, members), last = end_of(c, i);
        printf("  entries %" PRId64 " to %" PRId64 "\n", first, last);
        for (unsigned s = 0; s < f->ledger.quorum.ensemble; s++)
            print_member(f, members[s], s, first, last);
    }
}

static void print_range(entry_id from, entry_id to)
{
    if (from == to)
        printf("  entry %" PRId64 "\n", from);
    else
        printf("  entries %" PRId64 " to %" PRId64 "\n", from, to);
}

/* Exactly which, as ranges; all of them when it is about giving them up. */
static uint64_t print_gone(const struct salvage_facts *f, entry_id first, entry_id last, bool all)
{
    uint64_t n = 0;
    unsigned ranges = 0;

    for (entry_id e = first; e <= last; e++) {
        entry_id from = e;
        while (e <= last && salvage_is_gone(f, e))
            e++;
        if (e == from)
            continue;
        n += (uint64_t)(e - from);
        if (all || ranges++ < RANGES_MAX)
            print_range(from, e - 1);
    }
    if (!all && ranges > RANGES_MAX)
        printf("  and %u more ranges\n", ranges - RANGES_MAX);
    return n;
}

static uint64_t count_gone(const struct salvage_facts *f, bool *may_come_back)
{
    uint64_t n = 0;

    *may_come_back = false;
    for (entry_id e = 0; e < f->n; e++)
        if (salvage_is_gone(f, e)) {
            n++;
            *may_come_back |= salvage_may_come_back(f, e);
        }
    return n;
}

static int inspect(struct ledger_command *c)
{
    enum err err = survey(c, false);
    const struct salvage_facts *f = salvage_facts(c->salvage);
    bool back;

    if (err)
        return fail(c, err);
    printf("ledger %" PRId64 " is %s, E=%u Qw=%u Qa=%u", c->id, state_name(f->ledger.state),
           f->ledger.quorum.ensemble, f->ledger.quorum.write, f->ledger.quorum.ack);
    if (f->ledger.state == LEDGER_CLOSED)
        printf(", last entry %" PRId64 ", length %" PRId64 "\n", f->ledger.last, f->ledger.length);
    else
        printf(", acknowledged at least up to %" PRId64 "\n", f->known_lac);
    print_fragments(c);
    uint64_t gone = count_gone(f, &back);
    printf("%" PRIu64 " entries cannot be read%s%s\n", gone,
           back ? "; bookies that do not answer may have them" : "", gone ? ":" : "");
    print_gone(f, 0, f->n - 1, false);
    return EXIT_DONE;
}

/* ---- recover --------------------------------------------------------------------------------- */

static void opened(struct ledger_call *call, enum err err, struct ledger *l)
{
    struct ledger_command *c = container_of(call, struct ledger_command, open);

    if (!err)
        printf("ledger %" PRId64 " is closed: last entry %" PRId64 ", length %" PRId64 "\n", c->id,
               ledger_last_confirmed(l), ledger_length(l));
    ledger_drop(&l);
    answered(c, err);
}

static int recover(struct ledger_command *c)
{
    c->open = (struct ledger_call){.done = opened};
    ledger_open(c->client, c->id, LEDGER_OPEN_RECOVER, &c->open);
    enum err err = wait(c);
    return err ? fail(c, err) : EXIT_DONE;
}

/* ---- force-close ----------------------------------------------------------------------------- */

static void print_silent(const struct ledger_command *c)
{
    const struct salvage_facts *f = salvage_facts(c->salvage);
    const char *members[ENSEMBLE_MAX];

    salvage_fragment(c->salvage, f->fragments - 1, members);
    for (unsigned s = 0; s < f->ledger.quorum.ensemble; s++)
        if (!(f->answered & 1u << s))
            printf("  %s does not answer: whatever it has behind that entry is given up; a writer "
                   "that still reaches it is not fenced there\n",
                   members[s]);
}

static void print_end(const struct ledger_command *c, const struct salvage_end *end)
{
    const struct salvage_facts *f = salvage_facts(c->salvage);

    printf("ledger %" PRId64 " would be closed: last entry %" PRId64 ", length %" PRId64 "\n",
           c->id, end->last, end->length);
    print_silent(c);
    if (f->known_lac > end->last) {
        puts("given up although they were acknowledged:");
        print_range(end->last + 1, f->known_lac);
    }
    if (end->readable > 0) {
        printf("given up although %" PRIu64 " of them can be read, because of the first:\n",
               end->readable);
        print_range(end->last + 1, f->n - 1);
    }
    if (f->known_lac <= end->last && end->readable == 0)
        puts("no entry is known to be given up");
}

static int force_close(struct ledger_command *c)
{
    enum err err = survey(c, true);
    const struct salvage_facts *f = salvage_facts(c->salvage);

    if (err)
        return fail(c, err);
    if (f->ledger.state == LEDGER_CLOSED) {
        printf("ledger %" PRId64 " is closed already: last entry %" PRId64 "\n", c->id,
               f->ledger.last);
        return EXIT_DONE;
    }
    const struct salvage_end end = salvage_find_end(f);
    print_end(c, &end);
    if (!c->yes && !store_asks("Close it there?"))
        return EXIT_FAILED;
    salvage_close(c->salvage, &end);
    err = wait(c);
    if (err)
        return fail(c, err);
    printf("ledger %" PRId64 " is closed at %" PRId64 "\n", c->id, end.last);
    return EXIT_DONE;
}

/* ---- skip ------------------------------------------------------------------------------------ */

/* A marker of ours: a message that no consumer is given. */
static struct slice marker(void)
{
    enum { LGM_SKIPPED = 1000 };
    Pulsar__Proto__MessageMetadata m = PULSAR__PROTO__MESSAGE_METADATA__INIT;
    uint8_t body[256];

    m.producer_name = (char *)(uintptr_t) "lgm.skip";
    m.publish_time = loop_wall_ms();
    m.has_marker_type = 1;
    m.marker_type = LGM_SKIPPED;
    size_t size = pulsar__proto__message_metadata__get_packed_size(&m);
    body[0] = body[1] = body[2] = 0;
    body[3] = (uint8_t)size;
    pulsar__proto__message_metadata__pack(&m, body + 4);
    struct slab *s = slab_new(FRAME_MAGIC_SIZE + 4 + size);
    frame_magic(slab_bytes(s), crc32c(body, 4 + size));
    memcpy(slab_bytes(s) + FRAME_MAGIC_SIZE, body, 4 + size);
    return slice_take(&s, FRAME_MAGIC_SIZE + 4 + size);
}

struct skipping {
    struct ledger_command *command;
    struct slice marker;
    struct repair_rate rate;
    struct repair_report report;
};

static bool put_instead(void *ctx, entry_id e, struct view *payload, int64_t *length)
{
    const struct skipping *s = ctx;
    const struct salvage_facts *f = salvage_facts(s->command->salvage);

    if (e >= f->n || !salvage_is_gone(f, e))
        return false;
    *payload = slice_view(s->marker);
    *length = salvage_length(f, e, (uint32_t)payload->len);
    return true;
}

static bool is_unregistered(void *ctx, const char *bookie)
{
    const struct ledger_command *c = ((struct skipping *)ctx)->command;

    for (unsigned i = 0; i < c->here.n; i++)
        if (strcmp(c->here.replicas[i], bookie) == 0)
            return false;
    return true;
}

static void skipped(void *ctx, enum err err)
{
    answered(((struct skipping *)ctx)->command, err);
}

/* A repair that puts markers where there is nothing to copy. */
static enum err skip_all(struct ledger_command *c)
{
    struct skipping s = {.command = c, .marker = marker()};
    const struct repair_conf conf = {
        .is_bad = is_unregistered, .instead = put_instead, .ctx = &s, .rate = &s.rate};

    repair_start(c->client, c->id, (struct replicator_how){.thorough = true}, &conf, &s.report,
                 skipped, &s);
    enum err err = wait(c);
    slice_drop(&s.marker);
    return err;
}

static int skip(struct ledger_command *c)
{
    enum err err = survey(c, false);
    const struct salvage_facts *f = salvage_facts(c->salvage);
    bool back;

    if (err)
        return fail(c, err);
    if (f->ledger.state != LEDGER_CLOSED) {
        fprintf(stderr, "lgm ledger: %" PRId64 " is not closed: recover or force-close it first\n",
                c->id);
        return EXIT_FAILED;
    }
    uint64_t gone = count_gone(f, &back);
    if (gone == 0) {
        puts("every entry can be read: there is nothing to skip");
        return EXIT_DONE;
    }
    puts("given up:");
    print_gone(f, 0, f->n - 1, true);
    if (back)
        puts("bookies that do not answer may have some of them: what they have is given up too");
    if (!c->yes && !store_asks("Give these entries up?"))
        return EXIT_FAILED;
    err = skip_all(c);
    if (err)
        return fail(c, err);
    printf("%" PRIu64 " entries of ledger %" PRId64 " are skipped\n", gone, c->id);
    return EXIT_DONE;
}

/* ---- the command line ------------------------------------------------------------------------ */

static const struct option options[] = {
    STORE_OPTIONS, {"yes", no_argument, NULL, 'y'}, {"help", no_argument, NULL, 'h'}, {0}};

static const struct verb {
    const char *name;
    int (*run)(struct ledger_command *c);
} verbs[] = {
    {"inspect", inspect}, {"recover", recover}, {"force-close", force_close}, {"skip", skip}};

static int run(struct ledger_command *c, const struct verb *v)
{
    int code = cli_store_open("ledger", c->url, &c->etcd, &c->m);

    if (code != EXIT_DONE)
        return code;
    enum err err = connect(c);
    code = err ? fail(c, err) : v->run(c);
    salvage_drop(&c->salvage);
    ledger_client_drop(&c->client);
    meta_close(&c->m);
    if (c->loop)
        loop_drop(&c->loop);
    mark_record_drop(&c->here);
    return code;
}

static int choose(struct ledger_command *c, int n, char **words)
{
    if (n != 2)
        return usage_error("ledger", "a verb and a ledger's id are needed");
    if (parse_i64(words[1], &c->id) || c->id < 0)
        return usage_error("ledger", "'%s' is no ledger's id", words[1]);
    for (unsigned i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(words[0], verbs[i].name) == 0)
            return run(c, &verbs[i]);
    return usage_error("ledger", "'%s' is not known", words[0]);
}

int command_ledger(int argc, char **argv)
{
    struct ledger_command c = {0};
    int option;

    log_set_level(LOG_ERROR);
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return EXIT_DONE;
        }
        if (option == 'y')
            c.yes = true;
        else if (!store_option(option, optarg, &c.url, &c.etcd))
            return usage_error("ledger", "'%s' cannot be used", argv[optind - 1]);
    }
    return choose(&c, argc - optind, argv + optind);
}
