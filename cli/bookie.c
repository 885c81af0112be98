/* lgm bookie - bookies for good or for a while out, and the copies that were lost with them. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/bookie_gc.h"
#include "cli/command.h"
#include "cli/offline.h"
#include "cli/store.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/mem.h"
#include "metadata/paths.h"
#include "metadata/records.h"

enum { POLL_MS = 1000 };

/* Ledgers in recovery when the bookie took nothing new any more: who recovers one may have given
 * it entries, and name it when he has found the end. */
struct recoveries {
    bool known;
    size_t n, room;
    int64_t *id; /* ascending */
};

struct bookie_command {
    const char *url, *bookie;
    struct meta_etcd_conf etcd;
    bool cancel, now;
    struct metadata *m;
    struct recoveries first;
};

static const char help[] =
    "usage: lgm bookie decommission ID --metadata URL [--cancel | --no-wait]\n"
    "       lgm bookie under-replicated --metadata URL\n"
    "       lgm bookie autorecovery pause|resume|status --metadata URL\n"
    "       lgm bookie gc [status|run|resume|suspend|unsuspend] [--http HOST:PORT]\n\n"
    "decommission      empties a bookie for good.  One that runs becomes read-only and may go on\n"
    "                  running, one that is gone needs not come back: its copies are made again\n"
    "                  on others.  When no ledger names it any more its cookie is removed, so "
    "that\n"
    "                  it cannot start again with these directories.  May be stopped with Ctrl-C\n"
    "                  and run again.\n"
    "under-replicated  ledgers that lack copies, with the bookies that had them\n"
    "autorecovery      pause: no copies are made again in the whole cluster, as for a round of\n"
    "                  restarts; resume; status\n"
    "gc                garbage collection of one bookie: `lgm bookie gc --help`\n\n" STORE_HELP
    "  --cancel               the bookie is to stay: start it again afterwards\n"
    "  --no-wait              do not wait until it is empty; run again to finish\n\n"
    "Example: lgm bookie decommission bookie3.example.com:3181 --metadata etcd://m1:2379\n";

static int fail(const char *what, enum err err)
{
    fprintf(stderr, "lgm bookie: %s: %s\n", what, err_text(err));
    return EXIT_FAILED;
}

/* ---- under-replicated ------------------------------------------------------------------------ */

struct mark_count {
    uint64_t n;
};

static void print_mark(void *ctx, const struct meta_item *item)
{
    struct mark_count *all = ctx;
    struct mark_record m;
    int64_t id;

    if (path_mark_id(item->key, &id))
        return;
    all->n++;
    printf("ledger %" PRId64 " lacks", id);
    if (mark_record_read(slice_view(item->value), &m)) {
        puts(" what nobody can read");
        return;
    }
    for (unsigned i = 0; i < m.n; i++)
        printf(" %s", m.replicas[i]);
    if (m.ctime_ms >= 0)
        printf(" since %" PRId64 " s", ((int64_t)loop_wall_ms() - m.ctime_ms) / 1000);
    puts("");
    mark_record_drop(&m);
}

static int under_replicated(struct bookie_command *b)
{
    struct mark_count all = {0};
    enum err err = store_scan(b->m, PATH_UNDERREPLICATED, false, print_mark, &all);

    if (err)
        return fail("under-replicated", err);
    printf("%" PRIu64 " ledgers are under-replicated\n", all.n);
    return EXIT_DONE;
}

/* ---- autorecovery ---------------------------------------------------------------------------- */

static int print_status(struct bookie_command *b)
{
    struct slice value = {0};
    enum err err;
    bool paused = store_has(b->m, PATH_REPAIR_DISABLED, &err);

    if (!err)
        err = meta_get_wait(b->m, PATH_AUDITOR, &value, NULL);
    if (err && err != ERR_NOT_FOUND)
        return fail("autorecovery", err);
    printf("autorecovery %s, auditor: %.*s\n", paused ? "is paused" : "is on",
           err ? 6 : (int)value.len, err ? "nobody" : (const char *)value.base);
    slice_drop(&value);
    return EXIT_DONE;
}

static int autorecovery(struct bookie_command *b, const char *what)
{
    const char *key = PATH_REPAIR_DISABLED;
    enum err err;

    if (strcmp(what, "status") == 0)
        return print_status(b);
    if (strcmp(what, "pause") == 0)
        err = meta_put_wait(b->m, key, (struct slice){0}, META_ANY);
    else if (strcmp(what, "resume") == 0)
        err = store_remove(b->m, &key, 1);
    else
        return usage_error("bookie", "autorecovery takes pause, resume or status, not '%s'", what);
    if (err)
        return fail("autorecovery", err);
    return print_status(b);
}

/* ---- decommission ---------------------------------------------------------------------------- */

struct names {
    const char *bookie;
    uint64_t ledgers, unreadable;
    struct recoveries now;
};

static bool record_names(const Bookkeeper__LedgerMetadataFormat *r, const char *bookie)
{
    for (size_t i = 0; i < r->n_segment; i++)
        for (size_t k = 0; k < r->segment[i]->n_ensemblemember; k++)
            if (strcmp(r->segment[i]->ensemblemember[k], bookie) == 0)
                return true;
    return false;
}

static void remember(struct recoveries *r, int64_t id)
{
    if (r->n == r->room) {
        r->room = r->room ? 2 * r->room : 64;
        r->id = mem_resize(r->id, r->room * sizeof *r->id);
    }
    r->id[r->n++] = id;
}

static int by_id(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Of those that were known at first, the ones that are still there. */
static void keep_common(struct recoveries *first, struct recoveries *now)
{
    size_t kept = 0;

    if (now->n > 0)
        qsort(now->id, now->n, sizeof *now->id, by_id);
    for (size_t i = 0; now->n > 0 && i < first->n; i++)
        if (bsearch(&first->id[i], now->id, now->n, sizeof *now->id, by_id))
            first->id[kept++] = first->id[i];
    first->n = kept;
}

static void count_name(void *ctx, const struct meta_item *item)
{
    struct names *n = ctx;
    Bookkeeper__LedgerMetadataFormat *record;
    int64_t id;

    if (path_ledger_id(item->key, &id))
        return;
    if (ledger_record_read(slice_view(item->value), &record)) {
        n->unreadable++;
        return;
    }
    n->ledgers += record_names(record, n->bookie);
    if (record->state == BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__IN_RECOVERY)
        remember(&n->now, id);
    bookkeeper__ledger_metadata_format__free_unpacked(record, NULL);
}

struct places {
    char cookie[META_KEY_MAX], leaving[META_KEY_MAX], writable[META_KEY_MAX];
};

static enum err find_places(const struct bookie_command *b, struct places *p)
{
    TRY(path_cookie(b->bookie, p->cookie));
    TRY(path_leaving(b->bookie, p->leaving));
    return path_bookie(b->bookie, false, p->writable);
}

static int cancel(struct bookie_command *b, const struct places *p)
{
    const char *key = p->leaving;
    enum err err = store_remove(b->m, &key, 1);

    if (err)
        return fail(b->bookie, err);
    printf("%s stays; what was copied stays where it is.  It is read-only until it is started "
           "again\n",
           b->bookie);
    return EXIT_DONE;
}

static int finish(struct bookie_command *b, const struct places *p)
{
    const char *keys[] = {p->cookie, p->leaving};
    enum err err = store_remove(b->m, keys, 2);

    if (err)
        return fail(b->bookie, err);
    printf("%s is decommissioned: no ledger names it and its cookie is removed.  Stop it if it "
           "runs; its directories may be deleted\n",
           b->bookie);
    return EXIT_DONE;
}

/* One that is registered as writable may be given new ledgers at any time. */
static enum err look(struct bookie_command *b, const struct places *p, struct names *n, bool *out)
{
    enum err err = ERR_OK;
    bool writable = store_has(b->m, p->writable, &err);

    TRY(err);
    *n = (struct names){.bookie = b->bookie};
    err = store_scan(b->m, PATH_LEDGERS "/", false, count_name, n);
    if (!err && !writable && b->first.known) {
        keep_common(&b->first, &n->now);
    } else if (!err && !writable) {
        b->first = n->now;
        b->first.known = true;
        n->now = (struct recoveries){0};
    }
    mem_free(n->now.id);
    TRY(err);
    *out = !writable && n->ledgers == 0 && n->unreadable == 0 && b->first.n == 0;
    return ERR_OK;
}

static void pause_ms(long ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

static int wait_empty(struct bookie_command *b, const struct places *p)
{
    uint64_t told = UINT64_MAX, left;
    struct names n;
    bool out = false;

    for (;;) {
        enum err err = look(b, p, &n, &out);
        if (err)
            return fail(b->bookie, err);
        left = n.ledgers + n.unreadable + b->first.n;
        if (left != told)
            printf("%" PRIu64 " ledgers name %s, %" PRIu64 " cannot be read, %zu are in recovery\n",
                   n.ledgers, b->bookie, n.unreadable, b->first.n);
        told = left;
        fflush(stdout);
        if (out)
            return finish(b, p);
        if (b->now)
            return EXIT_DONE;
        pause_ms(POLL_MS);
    }
}

static int decommission(struct bookie_command *b)
{
    struct places p;
    bool paused, known;
    enum err err = find_places(b, &p);

    if (err)
        return usage_error("bookie", "'%s' cannot be a bookie's id", b->bookie);
    if (b->cancel)
        return cancel(b, &p);
    known = store_has(b->m, p.cookie, &err);
    if (!err && !known) {
        fprintf(stderr, "lgm bookie: %s has no cookie: it is no bookie of this cluster\n",
                b->bookie);
        return EXIT_FAILED;
    }
    if (!err)
        err = meta_put_wait(b->m, p.leaving, (struct slice){0}, META_ANY);
    paused = !err && store_has(b->m, PATH_REPAIR_DISABLED, &err);
    if (err)
        return fail(b->bookie, err);
    if (paused)
        puts("autorecovery is paused: nothing is copied until `lgm bookie autorecovery resume`");
    return wait_empty(b, &p);
}

/* ---- the command line ------------------------------------------------------------------------ */

static const struct option options[] = {STORE_OPTIONS,
                                        {"cancel", no_argument, NULL, 'c'},
                                        {"no-wait", no_argument, NULL, 'n'},
                                        {"help", no_argument, NULL, 'h'},
                                        {0}};

static int run(struct bookie_command *b, int n, char **words)
{
    const char *verb = words[0];

    if (strcmp(verb, "under-replicated") == 0 && n == 1)
        return under_replicated(b);
    if (strcmp(verb, "autorecovery") == 0 && n == 2)
        return autorecovery(b, words[1]);
    if (strcmp(verb, "decommission") != 0 || n != 2)
        return usage_error("bookie", "'%s' with %d words after it is not known", verb, n - 1);
    b->bookie = words[1];
    return decommission(b);
}

int command_bookie(int argc, char **argv)
{
    struct bookie_command b = {0};
    int option;
    const struct offline_verb *offline = argc > 1 ? offline_find(argv[1]) : NULL;

    if (argc > 1 && strcmp(argv[1], "gc") == 0)
        return gc_command(argc - 1, argv + 1);
    if (offline)
        return offline_run(offline, argc - 1, argv + 1);
    log_set_level(LOG_WARN);
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'h') {
            puts(help);
            offline_help();
            return EXIT_DONE;
        }
        if (option == 'c')
            b.cancel = true;
        else if (option == 'n')
            b.now = true;
        else if (!store_option(option, optarg, &b.url, &b.etcd))
            return usage_error("bookie", "'%s' cannot be used", argv[optind - 1]);
    }
    if (optind == argc)
        return usage_error("bookie", "what is to be done?");
    int code = cli_store_open("bookie", b.url, &b.etcd, &b.m);
    if (code != EXIT_DONE)
        return code;
    code = run(&b, argc - optind, argv + optind);
    meta_close(&b.m);
    return code;
}
