#include "bookie/disk_watch.h"

#include "common/log.h"
#include "common/mem.h"

enum { SOONEST_US = 10 * 1000 };

struct disk_watch {
    struct disk_watch_conf conf;
    struct watched_dir dirs[DISK_DIRS_MAX];
    struct disk_rules rules;
    struct disk_verdict verdict;
    uint64_t looked_at, next_us;
    struct timer timer;
};

static void say_level(const struct disk_watch *w, unsigned dir, enum err failure)
{
    static const char *const events[] = {
        [DISK_ROOMY] = "disk.became_roomy",
        [DISK_WARNED] = "disk.became_tight",
        [DISK_FULL] = "disk.became_full",
        [DISK_FAILED] = "disk.became_bad",
    };
    const struct disk_dir *d = &w->rules.dirs[dir];
    log_event(d->level == DISK_ROOMY ? LOG_INFO : LOG_WARN, events[d->level],
              F_STR("dir", w->dirs[dir].path), F_F64("used", disk_dir_used(d)),
              F_U64("free", d->free_bytes), F_ERR(failure));
}

/* A device that cannot be asked tells nothing new but what its last write did. */
static void look_at(struct disk_watch *w, unsigned dir)
{
    struct disk *disk = w->conf.disk;
    uint64_t free_bytes = 0, total = 0;
    const struct disk_dir before = w->rules.dirs[dir];
    const enum err failure = w->conf.failure(w->conf.ctx, dir);
    if (disk->ops->space(disk, w->dirs[dir].path, &free_bytes, &total))
        total = 0;
    disk_rules_saw(&w->rules, dir, free_bytes, total, failure);
    if (w->rules.dirs[dir].level != before.level)
        say_level(w, dir, failure);
    const uint64_t since = loop_now(w->conf.loop) - w->looked_at;
    const uint64_t soon = disk_rules_turns_in(&w->rules, dir, before.free_bytes, since) / 2;
    w->next_us = soon < w->next_us ? soon : w->next_us;
}

static const struct disk_dir *fullest(const struct disk_watch *w, unsigned *at)
{
    *at = 0;
    for (unsigned i = 1; i < w->rules.n; i++)
        if (!w->rules.dirs[i].is_journal &&
            disk_dir_used(&w->rules.dirs[i]) > disk_dir_used(&w->rules.dirs[*at]))
            *at = i;
    return &w->rules.dirs[*at];
}

static void say_verdict(const struct disk_watch *w)
{
    unsigned at;
    const bool writable = w->verdict.writable;
    const struct disk_dir *d = fullest(w, &at);
    log_event(writable ? LOG_INFO : LOG_WARN,
              writable ? "bookie.became_writable" : "bookie.became_readonly",
              F_STR("dir", w->dirs[at].path), F_F64("used", disk_dir_used(d)),
              F_F64("threshold", w->conf.rules.threshold),
              F_U64("writable_dirs", w->verdict.writable_dirs),
              F_STR("recovery", w->verdict.reserve ? "taken" : "refused"));
}

static void look(struct disk_watch *w)
{
    w->next_us = w->conf.interval_us;
    for (unsigned i = 0; i < w->rules.n; i++)
        look_at(w, i);
    w->looked_at = loop_now(w->conf.loop);
    if (w->next_us < SOONEST_US && w->conf.interval_us > SOONEST_US)
        w->next_us = SOONEST_US;
    const struct disk_verdict v = disk_rules_decide(&w->rules);
    const bool turned = v.writable != w->verdict.writable;
    w->verdict = v;
    if (turned)
        say_verdict(w);
    w->conf.looked(w->conf.ctx, &w->rules, &w->verdict);
}

static void on_time(struct timer *t)
{
    struct disk_watch *w = container_of(t, struct disk_watch, timer);
    look(w);
    loop_after(w->conf.loop, &w->timer, w->next_us);
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
    disk_rules_init(&w->rules, &conf->rules);
    for (unsigned i = 0; i < conf->n && i < DISK_DIRS_MAX; i++) {
        w->dirs[i] = conf->dirs[i];
        disk_rules_add(&w->rules, conf->dirs[i].is_journal);
    }
    w->verdict = (struct disk_verdict){.writable = true, .reserve = true};
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
