#include "ledger/mark_work.h"

static void end(struct mark_work *w, enum mark_work_end how, enum err err)
{
    w->state = MARK_WORK_IDLE;
    w->effects->end(w->ctx, how, err);
}

void mark_work_start(struct mark_work *w, const struct mark_work_effects *effects, void *ctx)
{
    *w = (struct mark_work){.state = MARK_WORK_READING, .effects = effects, .ctx = ctx};
    effects->read(ctx);
}

static void repair(struct mark_work *w)
{
    w->state = MARK_WORK_REPAIRING;
    w->effects->repair(w->ctx);
}

void mark_work_read(struct mark_work *w, enum err err, int64_t version, uint64_t revision,
                    uint64_t census)
{
    if (w->state != MARK_WORK_READING)
        return;
    if (err) {
        end(w, err == ERR_NOT_FOUND ? MARK_WORK_GONE : MARK_WORK_LATER, err);
        return;
    }
    w->version = version;
    w->revision = revision;
    if (census >= revision) {
        repair(w);
        return;
    }
    w->state = MARK_WORK_WAITING;
    w->effects->look(w->ctx);
}

void mark_work_census(struct mark_work *w, uint64_t census)
{
    if (w->state == MARK_WORK_WAITING && census >= w->revision)
        repair(w);
    else if (w->state == MARK_WORK_WAITING)
        w->effects->look(w->ctx);
}

void mark_work_repaired(struct mark_work *w, enum err err)
{
    if (w->state != MARK_WORK_REPAIRING)
        return;
    if (err) {
        end(w, MARK_WORK_LATER, err);
        return;
    }
    w->state = MARK_WORK_REMOVING;
    w->effects->remove(w->ctx, w->version);
}

void mark_work_removed(struct mark_work *w, enum err err)
{
    if (w->state != MARK_WORK_REMOVING)
        return;
    if (!err || err == ERR_NOT_FOUND)
        end(w, MARK_WORK_DONE, ERR_OK);
    else
        end(w, MARK_WORK_NEWER, err);
}

void mark_work_stop(struct mark_work *w)
{
    w->state = MARK_WORK_IDLE;
}
