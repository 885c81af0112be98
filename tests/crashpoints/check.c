#include "tests/crashpoints/check.h"

#include <endian.h>
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/bookie_frame.h"
#include "tests/crashpoints/talk.h"

enum { PATIENCE_S = 20, LIMIT_S = 60, WHY = 400, AT_ONCE = 128 };

struct shared {
    struct book book;
    char why[WHY];
};

static char why[WHY];

__attribute__((format(printf, 1, 2))) static bool wrong(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    return false;
}

/* ---- entries -------------------------------------------------------------------------------- */

static bool is_absent(int32_t status)
{
    return status == BOOKIE_NO_ENTRY || status == BOOKIE_NO_LEDGER;
}

static bool check_entry(const struct book *b, const struct talk_answer *a)
{
    const struct book_ledger *l = &b->ledgers[a->ledger - BOOK_FIRST];
    const struct book_entry *e = &l->at[a->entry];
    if (is_absent(a->status) && (e->least == 0 || l->deleted))
        return true;
    if (is_absent(a->status))
        return wrong("entry %" PRId64 " of ledger %" PRId64 " was acknowledged and is denied (%d)",
                     a->entry, a->ledger, a->status);
    if (a->status != BOOKIE_OK)
        return wrong("entry %" PRId64 " of ledger %" PRId64 " is answered with status %d", a->entry,
                     a->ledger, a->status);
    const int v = book_version_of(b, a->ledger, a->entry, a->body, a->len);
    if (v < 0)
        return wrong("entry %" PRId64 " of ledger %" PRId64 " has bytes that nobody wrote",
                     a->entry, a->ledger);
    return v + 1 >= e->least ||
           wrong("entry %" PRId64 " of ledger %" PRId64 " is what it was before it was replaced",
                 a->entry, a->ledger);
}

static bool check_last(const struct book *b, const struct talk_answer *a)
{
    const struct book_ledger *l = &b->ledgers[a->ledger - BOOK_FIRST];
    uint64_t id;
    if (is_absent(a->status) && (l->last < 0 || l->deleted))
        return true;
    if (a->status != BOOKIE_OK || a->len < 16)
        return wrong("the last entry of ledger %" PRId64 " is answered with status %d", a->ledger,
                     a->status);
    memcpy(&id, a->body + 8, sizeof id);
    const int64_t last = (int64_t)be64toh(id);
    return (last >= l->last && last <= l->last_asked) ||
           wrong("the last entry of ledger %" PRId64 " is %" PRId64 ", not %" PRId64 " to %" PRId64,
                 a->ledger, last, l->last, l->last_asked);
}

static bool take_reads(const struct book *b, struct talk *t, unsigned n)
{
    struct talk_answer a;
    for (; n > 0; n--) {
        if (!talk_next(t, &a))
            return wrong("no answer to a read");
        if (a.kind != TALK_READ || !(a.entry < 0 ? check_last(b, &a) : check_entry(b, &a)))
            return false;
    }
    return true;
}

static bool check_entries(const struct book *b, struct talk *t, int64_t ledger)
{
    const struct book_ledger *l = &b->ledgers[ledger - BOOK_FIRST];
    const int64_t end = l->last_asked + 3 < BOOK_ENTRIES ? l->last_asked + 3 : BOOK_ENTRIES;
    unsigned n = 0;
    for (int64_t e = -1; e < end; e++) {
        talk_read(t, 0, ledger, e);
        if (++n == AT_ONCE) {
            if (!take_reads(b, t, n))
                return false;
            n = 0;
        }
    }
    return take_reads(b, t, n);
}

/* ---- ledgers -------------------------------------------------------------------------------- */

static bool check_lac(const struct book *b, struct talk *t, int64_t ledger)
{
    const struct book_ledger *l = &b->ledgers[ledger - BOOK_FIRST];
    struct talk_answer a;
    uint64_t ids[2];
    talk_read_lac(t, 1, ledger);
    if (!talk_next(t, &a) || a.kind != TALK_READ_LAC)
        return wrong("no answer to a question for a LAC");
    if (a.len < sizeof ids)
        return l->lac < 0 || l->deleted ||
               wrong("ledger %" PRId64 " has lost its explicit LAC %" PRId64, ledger, l->lac);
    memcpy(ids, a.body, sizeof ids);
    const int64_t lac = (int64_t)be64toh(ids[1]);
    if (be64toh(ids[0]) != (uint64_t)ledger || a.len != 20)
        return wrong("the explicit LAC of ledger %" PRId64 " has other bytes", ledger);
    return (lac >= l->lac && lac <= l->lac_asked) ||
           wrong("the explicit LAC of ledger %" PRId64 " is %" PRId64 ", not %" PRId64, ledger, lac,
                 l->lac);
}

static bool add(struct talk *t, int64_t ledger, int64_t entry, bool other_key, int32_t *status)
{
    static uint8_t bytes[BOOK_ENTRY_MAX];
    struct talk_answer a;
    const size_t len = book_entry_bytes(ledger, entry, 0, bytes);
    talk_add(t, 0, 0, ledger, entry, bytes, len, other_key);
    if (!talk_next(t, &a) || a.kind != TALK_ADD)
        return wrong("no answer to an add");
    *status = a.status;
    return true;
}

/* A fence holds; where there is none adds are taken. */
static bool check_fence(struct book *b, struct talk *t, int64_t ledger)
{
    struct book_ledger *l = book_ledger(b, ledger);
    struct book_act act = {.kind = BOOK_ADD, .ledger = ledger, .entry = l->last_asked + 2};
    int32_t status;
    if (act.entry >= BOOK_ENTRIES || l->deleted)
        return true;
    if (l->must_know) {
        if (!add(t, ledger, act.entry, true, &status))
            return false;
        if (status != BOOKIE_EUA)
            return wrong("ledger %" PRId64 " takes another key: status %d", ledger, status);
    }
    book_asked(b, &act);
    if (!add(t, ledger, act.entry, false, &status))
        return false;
    if (status == BOOKIE_OK)
        book_answered(b, &act);
    if (status == BOOKIE_OK && l->fenced)
        return wrong("ledger %" PRId64 " was fenced and takes an add", ledger);
    return status == BOOKIE_OK || (status == BOOKIE_FENCED && l->fence_asked) ||
           wrong("ledger %" PRId64 " answers an add with status %d", ledger, status);
}

static bool check_all(struct book *b, struct talk *t)
{
    for (int64_t ledger = BOOK_FIRST; ledger < BOOK_FIRST + BOOK_LEDGERS; ledger++) {
        if (!book_ledger(b, ledger)->is_known)
            continue;
        if (!check_entries(b, t, ledger) || !check_lac(b, t, ledger) || !check_fence(b, t, ledger))
            return false;
    }
    return true;
}

const char *check_bookie(struct book *b, uint16_t port)
{
    struct talk *t = talk_open(port, PATIENCE_S);
    const bool fine = t ? check_all(b, t) : wrong("it does not listen");
    talk_close(&t);
    return fine ? NULL : why;
}

/* ---- a state -------------------------------------------------------------------------------- */

static void log_to(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
        err(1, "%s", path);
    close(fd);
}

static void run(const struct check_conf *conf, struct shared *s, const char *dir)
{
    struct home h;
    alarm(LIMIT_S);
    log_to(conf->log);
    if (chdir(dir) != 0)
        err(1, "%s", dir);
    home_configure(&h, conf->sets);
    const enum err err = home_start(&h, home_metadata(conf->identity, s->book.is_registered), 1);
    if (err)
        snprintf(s->why, sizeof s->why, "it refuses to start: %s", err_name(err));
    const char *what = err ? NULL : check_bookie(&s->book, bookie_port(h.bookie));
    if (what)
        snprintf(s->why, sizeof s->why, "%s", what);
    _exit(0);
}

static void start_and_ask(const struct check_conf *conf, struct shared *s, const char *dir)
{
    int status;
    const pid_t child = fork();
    if (child == 0)
        run(conf, s, dir);
    if (child < 0 || waitpid(child, &status, 0) != child)
        err(1, "a bookie");
    if (!s->why[0] && WIFSIGNALED(status))
        snprintf(s->why, sizeof s->why, "it ends by signal %d", WTERMSIG(status));
    else if (!s->why[0] && WEXITSTATUS(status) != 0)
        snprintf(s->why, sizeof s->why, "it ends with code %d", WEXITSTATUS(status));
}

const char *check_state(const struct check_conf *conf, const struct book *b, const char *dir)
{
    static struct shared *s;
    if (!s)
        s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED)
        err(1, "memory");
    s->book = *b;
    s->why[0] = '\0';
    start_and_ask(conf, s, dir);
    /* One that was not registered has got an incarnation that only that store knew. */
    if (conf->again && s->book.is_registered && !s->why[0]) {
        start_and_ask(conf, s, dir);
        if (s->why[0]) {
            snprintf(why, sizeof why, "started once more: %.350s", s->why);
            return why;
        }
    }
    return s->why[0] ? s->why : NULL;
}
