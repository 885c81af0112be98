#include "tests/crashpoints/states.h"

#include <err.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/rng.h"

enum { SEEN = 1 << 20, PATH = 1024 };

/* Of all workers. */
struct tally {
    atomic_uint tried, same, wrong;
    atomic_size_t next;
    _Atomic uint64_t seen[SEEN];
};

/* A crash, and when its turn is. */
struct turn {
    struct crash crash;
    uint64_t key;
};

struct plan {
    struct turn *at;
    size_t n, room;
    uint64_t seed;
};

/* ---- which ---------------------------------------------------------------------------------- */

/* In any order, those around a change of names more often early: there are few of them. */
static void plan_add(struct plan *p, const struct change *c, uint64_t after, enum keep keep,
                     uint64_t seed)
{
    const uint64_t key = rng_below(&p->seed, 1 << 30);
    if (p->n == p->room) {
        p->room = p->room ? p->room * 2 : 1024;
        p->at = realloc(p->at, p->room * sizeof *p->at);
    }
    p->at[p->n++] = (struct turn){{after, keep, seed},
                                  change_is_name(c) || (c->flags & REC_DIR) ? key / 4 : key};
}

static void plan_focus(struct plan *p, const char *focus, const struct change *c, uint64_t i,
                       bool syncs)
{
    if (strcmp(focus, "none") == 0 && syncs)
        plan_add(p, c, i, KEEP_NONE, 0);
    if (strcmp(focus, "names") == 0 && change_is_name(c) && !strstr(c->path, "/index/"))
        plan_add(p, c, i, KEEP_NAMES, 0);
}

static void plan_record(struct plan *p, const struct states_conf *conf, uint64_t i)
{
    const struct recording *r = conf->recording;
    const struct change *c = &r->at[i], *next = i + 1 < r->n ? c + 1 : NULL;
    const bool syncs = !next || next->op == REC_SYNC_END || next->op == REC_SYNC_FAILED;
    if (conf->focus) {
        plan_focus(p, conf->focus, c, i, syncs);
        return;
    }
    if (syncs)
        plan_add(p, c, i, KEEP_NONE, 0);
    if (!next || change_is(next))
        plan_add(p, c, i, KEEP_ALL, 0);
    if (c->op == REC_WRITE)
        plan_add(p, c, i, KEEP_TORN, conf->seed + i);
    if (!syncs && !change_is_name(c))
        return;
    plan_add(p, c, i, KEEP_NAMES, 0);
    plan_add(p, c, i, KEEP_BYTES, 0);
    for (unsigned s = 0; s < conf->some; s++)
        plan_add(p, c, i, KEEP_SOME, conf->seed + s);
}

static int by_key(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static void plan_make(struct plan *p, const struct states_conf *conf)
{
    p->seed = conf->seed;
    const uint64_t n = conf->recording->n;
    for (uint64_t i = conf->from == NEVER ? n - 1 : conf->from; i < n; i++)
        plan_record(p, conf, i);
    qsort(p->at, p->n, sizeof p->at[0], by_key);
}

void states_book(const struct recording *r, uint64_t after, struct book *out)
{
    book_init(out);
    for (uint64_t i = 0; i <= after && i < r->n; i++)
        if (r->at[i].op == REC_NOTE)
            book_note(out, r->at[i].at, r->at[i].payload, r->at[i].payload_len);
}

static uint64_t notes_until(const struct recording *r, uint64_t after)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i <= after && i < r->n; i++)
        n += r->at[i].op == REC_NOTE;
    return n;
}

/* The same files and the same book have been looked at. */
static bool is_seen(struct tally *t, uint64_t sum)
{
    size_t i = sum % SEEN;
    for (unsigned tries = 0; tries < 64; tries++, i = (i + 1) % SEEN) {
        uint64_t was = 0;
        if (atomic_compare_exchange_strong(&t->seen[i], &was, sum))
            return false;
        if (was == sum)
            return true;
    }
    return false;
}

/* ---- trying them ---------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

static void remove_all(const char *dir)
{
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void tell_log(const char *path)
{
    char line[1000];
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (strstr(line, " ERROR ") || strstr(line, " WARN ") || strstr(line, "Assert") ||
            strstr(line, "panic"))
            printf("      %s", line);
    if (f)
        fclose(f);
}

static void try_one(const struct states_conf *conf, struct tally *t, const struct crash *c,
                    const char *dir, const char *log)
{
    static struct book book;
    struct check_conf check = conf->check;
    remove_all(dir);
    if (mkdir(dir, 0755) != 0)
        err(1, "%s", dir);
    const uint64_t sum = disk_build(conf->recording, c, dir);
    if (is_seen(t, sum ^ notes_until(conf->recording, c->after) * 0x9e3779b97f4a7c15u)) {
        atomic_fetch_add(&t->same, 1);
        return;
    }
    unlink(log);
    states_book(conf->recording, c->after, &book);
    check.log = log;
    check.again = conf->again && (sum >> 16) % conf->again == 0;
    const char *what = check_state(&check, &book, dir);
    atomic_fetch_add(&t->tried, 1);
    if (!what)
        return;
    atomic_fetch_add(&t->wrong, 1);
    printf("WRONG %" PRIu64 ":%s:%" PRIu64 ": %s\n", c->after, keep_names[c->keep], c->seed, what);
    tell_log(log);
    fflush(stdout);
}

static uint64_t now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec;
}

static void work(const struct states_conf *conf, struct tally *t, const struct plan *p,
                 unsigned worker)
{
    char dir[PATH], log[PATH];
    const uint64_t until = conf->seconds ? now_s() + conf->seconds : UINT64_MAX;
    snprintf(dir, sizeof dir, "%s/state-%u", conf->dir, worker);
    snprintf(log, sizeof log, "%s/log-%u", conf->dir, worker);
    for (size_t i; (i = atomic_fetch_add(&t->next, 1)) < p->n && now_s() < until;) {
        if (conf->stop && atomic_load(&t->wrong) >= conf->stop)
            break;
        try_one(conf, t, &p->at[i].crash, dir, log);
    }
    remove_all(dir);
}

static void start_workers(const struct states_conf *conf, struct tally *t, const struct plan *p)
{
    fflush(NULL);
    for (unsigned i = 0; i < conf->jobs; i++) {
        const pid_t child = fork();
        if (child < 0)
            err(1, "a worker");
        if (child == 0) {
            work(conf, t, p, i);
            fflush(NULL);
            _exit(0);
        }
    }
    for (int status; wait(&status) > 0;)
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            printf("WRONG a worker ended with %d\n", status);
            atomic_fetch_add(&t->wrong, 1);
        }
}

unsigned states_check(const struct states_conf *conf)
{
    struct plan p = {0};
    struct tally *t =
        mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (t == MAP_FAILED)
        err(1, "memory");
    const uint64_t began = now_s();
    plan_make(&p, conf);
    start_workers(conf, t, &p);
    const unsigned tried = atomic_load(&t->tried), same = atomic_load(&t->same);
    printf("%" PRIu64 " records, %zu crashes: %u tried, %u like another, %zu left out, %u wrong, "
           "%" PRIu64 " s\n",
           conf->recording->n, p.n, tried, same, p.n - tried - same, atomic_load(&t->wrong),
           now_s() - began);
    const unsigned bad = atomic_load(&t->wrong);
    munmap(t, sizeof *t);
    free(p.at);
    return bad;
}

/* ---- marks ---------------------------------------------------------------------------------- */

enum { MARKS = 16, MARK_MAGIC = 0x4c474d4d, MARK_HEAD = 24, MARK_JOURNAL = 28, NAME_MAX_LEN = 600 };

struct mark {
    char name[NAME_MAX_LEN + REC_PATH_MAX]; /* of the file, and of the journal in it */
    uint64_t file, offset;
};

static uint64_t number_at(const uint8_t *p, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v = v << 8 | p[i];
    return v;
}

static const struct change *last_write(const struct recording *r, uint64_t before, uint32_t object)
{
    for (uint64_t i = before; i > 0; i--)
        if (r->at[i - 1].op == REC_WRITE && r->at[i - 1].object == object)
            return &r->at[i - 1];
    return NULL;
}

static bool is_mark(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strcmp(slash ? slash + 1 : path, "mark") == 0;
}

/* False: it goes back. */
static bool mark_moves(struct mark *marks, const char *name, const uint8_t *bytes)
{
    const struct mark m = {.file = number_at(bytes, 8), .offset = number_at(bytes + 8, 8)};
    struct mark *was = marks;
    while (was->name[0] && strcmp(was->name, name) != 0)
        was++;
    const bool fine = m.file > was->file || (m.file == was->file && m.offset >= was->offset);
    *was = m;
    snprintf(was->name, sizeof was->name, "%s", name);
    return fine;
}

/* All journals of one file; docs/disk-format.md, "Mark". */
static bool marks_move(struct mark *marks, const char *path, const struct change *w)
{
    char name[NAME_MAX_LEN + REC_PATH_MAX];
    const uint8_t *at = w->payload + MARK_HEAD, *end = w->payload + w->payload_len;
    bool fine = true;
    while (end - at >= MARK_JOURNAL) {
        const uint64_t len = number_at(at + 24, 4);
        if (len > (uint64_t)(end - at) - MARK_JOURNAL || len > NAME_MAX_LEN - 2)
            return false;
        snprintf(name, sizeof name, "%s of %.*s", path, (int)len, (const char *)at + MARK_JOURNAL);
        fine &= mark_moves(marks, name, at);
        at += MARK_JOURNAL + len;
    }
    return fine;
}

unsigned states_check_marks(const struct recording *r)
{
    static struct mark marks[MARKS + 1];
    unsigned seen = 0, bad = 0;
    for (uint64_t i = 0; i < r->n; i++) {
        const struct change *c = &r->at[i];
        if (c->op != REC_RENAME || !is_mark(c->path2))
            continue;
        const struct change *w = last_write(r, i, c->object);
        if (!w || w->payload_len < MARK_HEAD || number_at(w->payload, 4) != MARK_MAGIC ||
            number_at(w->payload + 4, 2) != 3)
            continue;
        seen++;
        if (!marks_move(marks, c->path2, w)) {
            printf("WRONG %" PRIu64 ": the mark %s goes back\n", i, c->path2);
            bad++;
        }
    }
    printf("%u marks\n", seen);
    return bad + (seen == 0);
}
