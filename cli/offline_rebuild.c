/* lgm bookie rebuild-index - a bookie's index, made again from what it was made of. */
#include <inttypes.h>
#include <stdio.h>

#include "bookie/index_rebuild.h"
#include "cli/command.h"
#include "cli/offline.h"
#include "common/log.h"

static enum err look(const struct offline *o, const struct rebuild_conf *conf,
                     struct rebuild_dir *dirs, unsigned *lost)
{
    *lost = 0;
    for (unsigned i = 0; i < conf->n; i++) {
        struct rebuild_dir *d = &dirs[i];
        *d =
            (struct rebuild_dir){.dir = o->dirs.ledger_dirs[i], .index_dir = o->dirs.index_dirs[i]};
        TRY(index_is_lost(conf, d, &d->is_lost));
        d->is_lost |= o->force;
        *lost += d->is_lost;
    }
    return ERR_OK;
}

static void print(const struct offline *o, const struct rebuild_report *r)
{
    if (o->json) {
        printf("{\"logs\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"records\":%" PRIu64
               ",\"ledgers\":%" PRIu64 ",\"limbo\":%" PRIu64 ",\"damages\":%" PRIu64
               ",\"damagedBytes\":%" PRIu64 "}\n",
               r->logs, r->bytes, r->records, r->ledgers, r->limbo, r->damages, r->damaged_bytes);
        return;
    }
    printf("%" PRIu64 " records of %" PRIu64 " ledgers in %" PRIu64 " entry logs, %" PRIu64
           " bytes\n",
           r->records, r->ledgers, r->logs, r->bytes);
    if (r->damages)
        printf("%" PRIu64 " damaged places, %" PRIu64 " bytes: what stood there is lost here\n",
               r->damages, r->damaged_bytes);
    if (r->limbo)
        printf("%" PRIu64 " ledgers are in limbo: what they lack is unknown, never \"no entry\", "
               "until the bookie has compared them with its peers\n",
               r->limbo);
    puts("the index is made; start the bookie");
}

int offline_rebuild_index(struct offline *o)
{
    struct rebuild_dir dirs[DEVICES_MAX];
    struct rebuild_report report;
    unsigned lost;
    int code = offline_identity(o);
    if (code == EXIT_DONE)
        code = offline_metadata(o);
    if (code != EXIT_DONE)
        return code;
    const struct rebuild_conf conf = {
        .disk = disk_real(),
        .dirs = dirs,
        .n = o->dirs.ledgers.n,
        .journals = o->dirs.journal_dirs,
        .n_journals = o->dirs.journals.n,
        .record_max = (uint32_t)o->conf.frame_max,
        .meta = o->meta,
        .bookie_id = o->bookie_id,
    };
    enum err err = look(o, &conf, dirs, &lost);
    if (!err && lost == 0) {
        puts("the index is not lost: nothing was done (--force: make it again all the same)");
        return EXIT_DONE;
    }
    log_set_level(LOG_INFO); /* it may take a while */
    if (!err)
        err = index_rebuild(&conf, &report);
    if (err)
        return offline_fail(o, "the index cannot be made", err);
    print(o, &report);
    return report.damages ? EXIT_FAILED : EXIT_DONE;
}
