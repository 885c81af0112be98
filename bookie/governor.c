#include "bookie/governor.h"

void governor_init(struct governor *g, const struct governor_conf *conf)
{
    *g = (struct governor){.conf = *conf, .bytes_s = GOVERNOR_NO_LIMIT};
    if (g->conf.most == 0)
        g->conf.most = 1;
    g->reads = g->conf.most;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* One slow add of many is the device's affair: what counts is what lasts. */
static void feel(struct governor_sense *s, uint64_t us, bool is_quiet)
{
    if (us == 0)
        s->now_us = 0;
    else
        s->now_us = s->now_us ? (3 * s->now_us + us) / 4 : us;
    if (s->now_us && (is_quiet || s->quiet_us == 0 || s->now_us < s->quiet_us))
        s->quiet_us = s->now_us;
}

static bool is_disturbed(const struct governor_sense *s)
{
    const uint64_t half_more = s->quiet_us + s->quiet_us / 2;
    const uint64_t slack = s->quiet_us + GOVERNOR_SLACK_US;
    return s->now_us > (half_more > slack ? half_more : slack);
}

static void slow_down(struct governor *g, uint64_t used)
{
    const uint64_t from = smaller(g->bytes_s, used);
    const uint64_t cut = from / 10 * 7;
    g->is_braking = true;
    g->is_first = false;
    g->bytes_s = cut > g->conf.floor ? cut : g->conf.floor;
    g->reads = g->reads > 1 ? g->reads / 2 : 1;
}

/* A limit that is not reached says nothing about what would be too much. */
static void speed_up(struct governor *g, uint64_t used)
{
    g->is_braking = false;
    if (g->reads < g->conf.most)
        g->reads++;
    if (used < g->bytes_s / 10 * 8)
        return;
    const uint64_t more = g->is_first ? g->bytes_s : g->bytes_s / 10 + 1;
    g->bytes_s = g->bytes_s > GOVERNOR_NO_LIMIT - more ? GOVERNOR_NO_LIMIT : g->bytes_s + more;
}

static void let_go(struct governor *g)
{
    g->is_braking = false;
    g->bytes_s = GOVERNOR_NO_LIMIT;
    g->reads = g->conf.most;
}

/* Whoever comes next finds out from below what is too much: until that is felt, much has been
 * read. */
static void begin_low(struct governor *g)
{
    g->is_braking = false;
    g->is_first = true;
    g->bytes_s = g->conf.floor > GOVERNOR_BEGIN ? g->conf.floor : GOVERNOR_BEGIN;
    g->reads = 1;
}

static void begin_probe(struct governor *g)
{
    g->probing = GOVERNOR_PROBE;
    g->resume_s = g->bytes_s;
    g->bytes_s = g->conf.floor;
    g->reads = 1;
}

/* What the smoothing still knows of before is forgotten half way. */
static void probe(struct governor *g, const struct governor_sample *s)
{
    if (--g->probing == GOVERNOR_PROBE / 2) {
        g->adds.now_us = s->add_us;
        g->tail.now_us = s->tail_us;
    }
    feel(&g->adds, s->add_us, g->probing == 0);
    feel(&g->tail, s->tail_us, g->probing == 0);
    if (g->probing > 0)
        return;
    g->bytes_s = g->resume_s;
    g->age = 0;
}

void governor_step(struct governor *g, const struct governor_sample *s)
{
    const uint64_t used = s->us ? s->bytes * 1000 / (s->us / 1000 + 1) : 0;
    if (g->probing) {
        probe(g, s);
        return;
    }
    feel(&g->adds, s->add_us, s->bytes == 0);
    feel(&g->tail, s->tail_us, s->bytes == 0);
    g->age = s->bytes == 0 ? 0 : g->age + 1;
    g->left = s->bytes == 0 ? g->left + 1 : 0;
    if (s->add_us == 0 && s->tail_us == 0)
        let_go(g);
    else if (g->bytes_s == GOVERNOR_NO_LIMIT || g->left >= GOVERNOR_LEFT)
        begin_low(g);
    else if (g->age >= GOVERNOR_WINDOWS && !g->is_first)
        begin_probe(g);
    else if (s->bytes > 0 && (is_disturbed(&g->adds) || is_disturbed(&g->tail)))
        slow_down(g, used);
    else
        speed_up(g, used);
}
