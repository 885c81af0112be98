#include "bookie/disk_watch.h"

#include "common/log.h"
#include "common/mem.h"

struct disk_watch {
    struct disk_watch_conf conf;
    bool writable, reserve;
    struct timer timer;
};

static void say(struct disk_watch *w, bool writable, bool reserve, double used)
{
    if (writable == w->writable && reserve == w->reserve)
        return;
    if (writable != w->writable)
        log_event(writable ? LOG_INFO : LOG_WARN,
                  writable ? "bookie.became_writable" : "bookie.became_readonly",
                  F_STR("dir", w->conf.dir), F_F64("used", used),
                  F_F64("threshold", w->conf.threshold));
    w->writable = writable;
    w->reserve = reserve;
    w->conf.changed(w->conf.ctx, writable, reserve);
}

/* A device that cannot be asked tells nothing new. */
static void look(struct disk_watch *w)
{
    struct disk *d = w->conf.disk;
    uint64_t free_bytes, total;
    if (d->ops->space(d, w->conf.dir, &free_bytes, &total) || total == 0)
        return;
    const double used = 1.0 - (double)free_bytes / (double)total;
    const bool full = w->conf.is_full(w->conf.ctx);
    const double limit = w->writable ? w->conf.threshold : w->conf.low_water;
    say(w, used <= limit && !full, free_bytes > w->conf.reserve_bytes && !full, used);
}

static void on_time(struct timer *t)
{
    struct disk_watch *w = container_of(t, struct disk_watch, timer);
    look(w);
    loop_after(w->conf.loop, &w->timer, w->conf.interval_us);
}

static void start(void *ctx)
{
    struct disk_watch *w = ctx;
    on_time(&w->timer);
}

static void stop(void *ctx)
{
    struct disk_watch *w = ctx;
    loop_cancel(w->conf.loop, &w->timer);
}

struct disk_watch *disk_watch_open(const struct disk_watch_conf *conf)
{
    struct disk_watch *w = mem_new(struct disk_watch);
    w->conf = *conf;
    w->writable = w->reserve = true;
    w->timer.run = on_time;
    loop_call(conf->loop, start, w);
    return w;
}

void disk_watch_close(struct disk_watch **watch)
{
    struct disk_watch *w = *watch;
    *watch = NULL;
    if (!w)
        return;
    loop_call(w->conf.loop, stop, w);
    mem_free(w);
}
