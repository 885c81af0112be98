#include "tests/crashpoints/lives.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/rng.h"
#include "proto/bookie_frame.h"
#include "tests/crashpoints/book.h"
#include "tests/crashpoints/disk_model.h"
#include "tests/crashpoints/home.h"
#include "tests/crashpoints/recording.h"
#include "tests/crashpoints/talk.h"

enum { READ = 100 }; /* beside book_kind; version: what was acknowledged when it was asked */
enum { BURST = 32, PATIENCE_S = 20, PROBE_MS = 6000 };
enum { WRONG = 3, ENDED = 4 }; /* exit codes of a life */

struct work {
    const struct lives_conf *conf;
    struct book *book;
    uint64_t seed;
    struct talk *talk;
    struct metadata *meta;
    unsigned waiting;
    unsigned done, refused;
    struct book_act acts[BURST]; /* of this burst, by tag */
    unsigned n;
};

static uint64_t pick(struct work *w, uint64_t n)
{
    return rng_below(&w->seed, n);
}

static void note(enum book_note kind, const struct book_act *a)
{
    if (crashpoints_note)
        crashpoints_note(kind, a, a ? sizeof *a : 0);
}

static void die(int code)
{
    fflush(NULL);
    if (crashpoints_die)
        crashpoints_die(code);
    _exit(code);
}

static void wrong(const char *what, const struct talk_answer *a)
{
    printf("wrong: %s: ledger %" PRId64 " entry %" PRId64 " status %d\n", what, a->ledger, a->entry,
           a->status);
    die(WRONG);
}

/* ---- asking --------------------------------------------------------------------------------- */

static struct book_act *ask(struct work *w, struct book_act a)
{
    w->acts[w->n] = a;
    note(NOTE_ASKED, &a);
    book_asked(w->book, &a);
    w->waiting++;
    return &w->acts[w->n++];
}

static void ask_add(struct work *w, unsigned flags, int64_t ledger, int64_t entry)
{
    static uint8_t bytes[BOOK_ENTRY_MAX];
    const unsigned version = book_ledger(w->book, ledger)->at[entry].asked;
    const size_t len = book_entry_bytes(ledger, entry, version, bytes);
    ask(w, (struct book_act){.kind = BOOK_ADD,
                             .is_deferred = (flags & TALK_DEFERRED) != 0,
                             .version = (uint16_t)version,
                             .ledger = ledger,
                             .entry = entry});
    talk_add(w->talk, flags, w->n - 1, ledger, entry, bytes, len, false);
}

/* Two of three go to this bookie of the ledgers whose ensemble is larger than their quorum. */
static bool is_mine(int64_t ledger, int64_t entry)
{
    return ledger % 2 || entry % 3 != 2;
}

/* The next, or one of the few after it: they overtake each other on their way. */
static int64_t next_entry(struct work *w, int64_t ledger)
{
    const struct book_ledger *l = book_ledger(w->book, ledger);
    uint64_t skip = pick(w, 3);
    for (int64_t e = 0; e < BOOK_ENTRIES - 1; e++)
        if (!l->at[e].asked && is_mine(ledger, e) && skip-- == 0)
            return e;
    return -1;
}

static void add_next(struct work *w, int64_t ledger)
{
    const int64_t entry = next_entry(w, ledger);
    unsigned flags = 0;
    if (book_ledger(w->book, ledger)->fence_asked)
        flags = TALK_RECOVERY;
    else if (ledger % 8 == 3)
        flags = TALK_DEFERRED;
    if (entry >= 0)
        ask_add(w, flags, ledger, entry);
}

/* What was acknowledged, again: a recovery writes it with another header. */
static void add_again(struct work *w, int64_t ledger)
{
    struct book_ledger *l = book_ledger(w->book, ledger);
    const int64_t entry = l->last < 0 ? -1 : (int64_t)pick(w, (uint64_t)l->last + 1);
    if (entry >= 0 && l->at[entry].least && l->at[entry].least == l->at[entry].asked &&
        l->at[entry].asked < 200)
        ask_add(w, TALK_RECOVERY, ledger, entry);
}

static void ask_fence(struct work *w, int64_t ledger)
{
    ask(w, (struct book_act){.kind = BOOK_FENCE, .ledger = ledger, .entry = -1});
    talk_read(w->talk, TALK_FENCING, ledger, -1);
}

static void ask_lac(struct work *w, int64_t ledger)
{
    const struct book_ledger *l = book_ledger(w->book, ledger);
    const int64_t lac = l->lac_asked + 1 + (int64_t)pick(w, 3);
    ask(w, (struct book_act){.kind = BOOK_LAC, .ledger = ledger, .entry = lac});
    talk_write_lac(w->talk, w->n - 1, ledger, lac);
}

/* Not twice at a time, since answers do not say which of the two they are of. */
static void ask_read(struct work *w, int64_t ledger)
{
    const struct book_ledger *l = book_ledger(w->book, ledger);
    if (l->last < 0)
        return;
    const int64_t entry = (int64_t)pick(w, (uint64_t)l->last + 1);
    for (unsigned i = 0; i < w->n; i++)
        if (w->acts[i].kind == READ && w->acts[i].ledger == ledger && w->acts[i].entry == entry)
            return;
    w->acts[w->n++] = (struct book_act){
        .kind = READ, .version = l->at[entry].least, .ledger = ledger, .entry = entry};
    talk_read(w->talk, 0, ledger, entry);
    w->waiting++;
}

/* Some ledgers get much, some little, one nothing but a fence. */
static int64_t any_ledger(struct work *w)
{
    const uint64_t n = 6 + w->book->lives * 4;
    const uint64_t few = pick(w, 4) ? 6 : n;
    const uint64_t id = pick(w, few < BOOK_LEDGERS ? few : BOOK_LEDGERS);
    return BOOK_FIRST + (int64_t)id;
}

static void create(struct work *w, int64_t ledger)
{
    if (home_ledger_put(w->meta, ledger))
        err(1, "ledger %" PRId64, ledger);
}

/* From now on it may be here or not.  Nobody asks for it any more. */
static void delete_one(struct work *w)
{
    const int64_t ledger = BOOK_FIRST + 4 + (int64_t)pick(w, BOOK_LEDGERS - 4);
    const struct book_ledger *l = book_ledger(w->book, ledger);
    const struct book_act a = {.kind = BOOK_DELETE, .ledger = ledger};
    if (!l->is_known || l->deleted)
        return;
    note(NOTE_ASKED, &a);
    book_asked(w->book, &a);
    if (home_ledger_remove(w->meta, ledger))
        err(1, "ledger %" PRId64, ledger);
}

static void ask_something(struct work *w)
{
    const int64_t ledger = any_ledger(w);
    const struct book_ledger *l = book_ledger(w->book, ledger);
    const uint64_t what = pick(w, 100);
    if (l->deleted)
        return;
    if (!l->is_known && w->conf->has_garbage)
        create(w, ledger);
    if (what < 75)
        add_next(w, ledger);
    else if (what < 80)
        add_again(w, ledger);
    else if (what < 82 && ledger > BOOK_FIRST + 3)
        ask_fence(w, ledger);
    else if (what < 88)
        ask_lac(w, ledger);
    else
        ask_read(w, ledger);
}

/* ---- being answered ------------------------------------------------------------------------- */

static bool is_about(const struct book_act *a, const struct talk_answer *t)
{
    if (a->kind == BOOK_ADD)
        return t->kind == TALK_ADD && a->ledger == t->ledger && a->entry == t->entry;
    return (a->kind == BOOK_FENCE || a->kind == READ) && t->kind == TALK_READ &&
           a->ledger == t->ledger && a->entry == t->entry;
}

static struct book_act *act_of(struct work *w, const struct talk_answer *t)
{
    if (t->kind == TALK_WRITE_LAC || t->kind == TALK_FORCE)
        return &w->acts[t->tag];
    for (unsigned i = 0; i < w->n; i++)
        if (is_about(&w->acts[i], t))
            return &w->acts[i];
    return NULL;
}

static void check_read(struct work *w, const struct book_act *a, const struct talk_answer *t)
{
    if (t->status == BOOKIE_NO_ENTRY || t->status == BOOKIE_NO_LEDGER) {
        if (a->version)
            wrong("an acknowledged entry is denied", t);
    } else if (t->status == BOOKIE_OK) {
        const int v = book_version_of(w->book, t->ledger, t->entry, t->body, t->len);
        if (v < 0)
            wrong("an entry has bytes that nobody wrote", t);
        if (v + 1 < a->version)
            wrong("an entry is what it was before it was replaced", t);
    } else if (!w->conf->is_hurt) {
        wrong("an entry cannot be read", t);
    }
}

static void check_refusal(struct work *w, const struct book_act *a, const struct talk_answer *t)
{
    const bool fenced = book_ledger(w->book, a->ledger)->fence_asked;
    if (!w->conf->is_hurt && !(t->status == BOOKIE_FENCED && fenced))
        wrong("a request is refused", t);
    w->refused++;
}

static void take_answer(struct work *w)
{
    struct talk_answer t;
    if (!talk_next(w->talk, &t)) {
        if (!w->conf->is_hurt)
            printf("wrong: no answer\n");
        die(w->conf->is_hurt ? ENDED : WRONG);
    }
    w->waiting--;
    struct book_act *a = act_of(w, &t);
    if (!a)
        wrong("an answer to nothing", &t);
    if (a->kind == READ) {
        check_read(w, a, &t);
        a->kind = 0;
        return;
    }
    const bool is_done =
        t.status == BOOKIE_OK || (a->kind == BOOK_FENCE && t.status == BOOKIE_NO_ENTRY);
    if (is_done) {
        note(NOTE_ANSWERED, a);
        book_answered(w->book, a);
        w->done++;
    } else {
        check_refusal(w, a, &t);
    }
    a->kind = 0;
}

static void take_answers(struct work *w)
{
    while (w->waiting > 0)
        take_answer(w);
    w->n = 0;
}

/* ---- a life --------------------------------------------------------------------------------- */

static void rest_ms(long ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* A checkpoint of nothing but a row: what was added before is written by then. */
static void rows_alone(struct work *w)
{
    const int64_t ledger = any_ledger(w);
    const struct book_ledger *l = book_ledger(w->book, ledger);
    rest_ms(90);
    if (l->is_known && !l->deleted && ledger > BOOK_FIRST + 3 && pick(w, 2))
        ask_fence(w, ledger);
    else if (l->is_known && !l->deleted)
        ask_lac(w, ledger);
    take_answers(w);
    rest_ms(90);
}

static void burst(struct work *w)
{
    const uint64_t size = pick(w, 8) ? 1 + pick(w, 6) : BURST - 1;
    for (uint64_t i = 0; i < size; i++)
        ask_something(w);
    take_answers(w);
    if (pick(w, 12) == 0) {
        ask(w, (struct book_act){.kind = BOOK_FORCE, .ledger = BOOK_FIRST + 2});
        talk_force(w->talk, w->n - 1, BOOK_FIRST + 2);
        take_answers(w);
    }
    if (w->conf->has_garbage && pick(w, 3) == 0)
        delete_one(w);
    if (w->conf->has_garbage && pick(w, 4) == 0)
        rest_ms(30);
    if (pick(w, 15) == 0)
        rows_alone(w);
}

/* Ends in the middle of what it does. */
static void last_burst(struct work *w)
{
    for (unsigned i = 0; i < BURST - 1; i++)
        ask_something(w);
    for (uint64_t n = pick(w, w->waiting + 1); n > 0; n--)
        take_answer(w);
    die(0);
}

/* After something has failed: does it take adds again, or say why not? */
static void probe(struct work *w)
{
    int32_t status = -1;
    w->n = 0;
    for (unsigned ms = 0; ms < PROBE_MS; ms += 20) {
        static uint8_t bytes[BOOK_ENTRY_MAX];
        struct talk_answer t;
        const int64_t ledger = BOOK_FIRST, entry = next_entry(w, ledger);
        const size_t len = book_entry_bytes(ledger, entry, 0, bytes);
        ask(w, (struct book_act){.kind = BOOK_ADD, .ledger = ledger, .entry = entry});
        talk_add(w->talk, 0, 0, ledger, entry, bytes, len, false);
        if (!talk_next(w->talk, &t))
            die(ENDED);
        w->n = w->waiting = 0;
        status = t.status;
        if (status == BOOKIE_OK) {
            const struct book_act a = {.kind = BOOK_ADD, .ledger = ledger, .entry = entry};
            note(NOTE_ANSWERED, &a);
            book_answered(w->book, &a);
            break;
        }
        rest_ms(20);
    }
    printf("serves: %d\n", status);
}

static void noted(void)
{
    note(NOTE_COOKIE, NULL);
}

static int live(struct work *w, bool is_last)
{
    struct home h;
    home_configure(&h, w->conf->sets);
    w->meta = home_metadata_open(w->conf->metadata, noted);
    const enum err err = home_start(&h, w->meta, 2);
    if (err) {
        printf("refused to start: %s\n", err_name(err));
        die(w->conf->is_hurt ? ENDED : WRONG);
    }
    note(NOTE_SERVING, NULL);
    w->book->lives++;
    w->talk = talk_open(bookie_port(h.bookie), PATIENCE_S);
    if (!w->talk)
        die(WRONG);
    for (unsigned i = 0; i < w->conf->bursts; i++)
        burst(w);
    if (w->conf->is_hurt)
        probe(w);
    if (!is_last && pick(w, 2))
        last_burst(w);
    talk_close(&w->talk);
    home_stop(&h);
    note(NOTE_STOPPED, NULL);
    printf("%u done, %u refused\n", w->done, w->refused);
    fflush(NULL);
    return 0;
}

/* What was asked and answered before is in this recording, too. */
static void remember(struct work *w)
{
    for (uint64_t i = 0; i <= w->conf->after; i++) {
        const struct change *c = &w->conf->before->at[i];
        if (c->op != REC_NOTE)
            continue;
        book_note(w->book, c->at, c->payload, c->payload_len);
        if (crashpoints_note)
            crashpoints_note(c->at, c->payload, c->payload_len);
    }
}

static int run_life(struct work *w, unsigned number)
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        alarm(120);
        w->seed = w->conf->seed * 1000 + number;
        die(live(w, number + 1 == w->conf->lives));
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        err(1, "a life");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 1 && w->conf->is_hurt)
        return ENDED; /* by itself: a bookie whose journal cannot be written */
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    printf("wrong: a life ended by signal %d\n", WTERMSIG(status));
    return WRONG;
}

int lives_run(const struct lives_conf *conf)
{
    struct work *w = mem_new(struct work);
    int code = 0;
    w->conf = conf;
    w->book =
        mmap(NULL, sizeof *w->book, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (w->book == MAP_FAILED || chdir(conf->disk) != 0)
        err(1, "%s", conf->disk);
    book_init(w->book);
    if (conf->before)
        remember(w);
    for (unsigned i = 0; i < conf->lives && code == 0; i++)
        code = run_life(w, i);
    if (code == ENDED)
        printf("ended\n");
    fflush(NULL);
    return code == 0 || (code == ENDED && conf->is_hurt) ? 0 : 1;
}
