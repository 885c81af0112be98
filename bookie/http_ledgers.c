/* Ledgers over HTTP, as BookKeeper has them: their entries, in chunks; and their end. */
#include <inttypes.h>
#include <string.h>

#include "bookie/http_inquiry.h"
#include "common/mem.h"
#include "common/parse.h"
#include "ledger/client.h"
#include "metadata/paths.h"

enum {
    ENTRIES_A_PAGE = 1000,
    ENTRIES_A_CHUNK = 100,
    CHUNK_BYTES = 1024 * 1024, /* of entries: then the client must have taken it */
    READS_MAX = 8,
    ANSWER_US = 5 * 1000 * 1000
};

struct ledger_reading {
    struct http_admin *admin;
    struct http_request *request;
    int64_t id;
    entry_id first, next, last;
    int64_t page; /* 0: none was asked for */
    struct ledger_call call;
    struct ledger *ledger;
    struct ledger_read read;
    struct text chunk;
    bool begun; /* the answer */
    bool any;   /* a member of it was written */
};

static void end(struct ledger_reading *g)
{
    struct http_admin *a = g->admin;
    ledger_drop(&g->ledger);
    text_drop(&g->chunk);
    mem_free(g);
    a->reads--;
    http_calls_count(a, -1);
}

static void refuse(struct ledger_reading *g, enum err err)
{
    const int status = err == ERR_NO_LEDGER ? 404 : 503;
    http_reply_reason(g->request, status, "ledger %" PRId64 ": %s", g->id, err_text(err));
    end(g);
}

/* ---- one chunk after the other --------------------------------------------------------------- */

static void add_member(struct ledger_reading *g, const char *name, struct json_object *value)
{
    text_add(&g->chunk, "%s\"%s\":%s", g->any ? "," : "", name,
             json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN |
                                                       JSON_C_TO_STRING_NOSLASHESCAPE));
    g->any = true;
    json_object_put(value);
}

/* As BookKeeper shows bytes: ASCII, and what is none of it as U+FFFD. */
static struct json_object *shown(struct slice payload)
{
    static const char other[] = "\xef\xbf\xbd";
    char *text = mem_alloc(3 * payload.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < payload.len; i++) {
        if (payload.base[i] < 0x80)
            text[len++] = (char)payload.base[i];
        else
            for (unsigned k = 0; k < 3; k++)
                text[len++] = other[k];
    }
    struct json_object *o = json_object_new_string_len(text, (int)len);
    mem_free(text);
    return o;
}

static void take_entry(struct ledger_read *read, entry_id id, struct slice payload)
{
    struct ledger_reading *g = container_of(read, struct ledger_reading, read);
    char name[24];
    snprintf(name, sizeof name, "%" PRId64, id);
    add_member(g, name, shown(payload));
    g->next = id + 1;
    slice_drop(&payload);
}

static void read_on(struct ledger_reading *g);

static void chunk_taken(void *ctx, bool gone)
{
    struct ledger_reading *g = ctx;
    text_drop(&g->chunk);
    if (!gone && g->next <= g->last) {
        read_on(g);
        return;
    }
    http_reply_end(g->request);
    end(g);
}

/* What cannot be read any more is said among the entries: the status has been given. */
static void was_read(struct ledger_read *read, enum err err)
{
    struct ledger_reading *g = container_of(read, struct ledger_reading, read);
    if (err && !g->begun && g->next == g->first) {
        refuse(g, err);
        return;
    }
    if (err) {
        char *why = mem_format("entry %" PRId64 ": %s", g->next, err_text(err));
        add_member(g, "error", json_object_new_string(why));
        mem_free(why);
        g->next = g->last + 1;
    }
    if (!g->begun)
        http_reply_begin(g->request, 200, "application/json", chunk_taken, g);
    if (g->next > g->last)
        text_add(&g->chunk, "}");
    g->begun = true;
    http_reply_chunk(g->request, view_of(g->chunk.at, g->chunk.len));
}

static void read_on(struct ledger_reading *g)
{
    const entry_id until = g->next + ENTRIES_A_CHUNK - 1;
    g->read = (struct ledger_read){.first = g->next,
                                   .last = until < g->last ? until : g->last,
                                   .max_bytes = CHUNK_BYTES,
                                   .entry = take_entry,
                                   .done = was_read};
    ledger_read(g->ledger, &g->read);
}

/* ---- which entries --------------------------------------------------------------------------- */

static void begin(struct ledger_reading *g)
{
    text_add(&g->chunk, "{");
    if (g->page) {
        char *page = mem_format("%" PRId64, g->page);
        add_member(g, "Entries for page: ", json_object_new_string(page));
        mem_free(page);
    }
    g->first = g->next;
    if (g->next <= g->last) {
        read_on(g);
        return;
    }
    text_add(&g->chunk, "}");
    http_reply(g->request, 200, "application/json", view_of(g->chunk.at, g->chunk.len));
    end(g);
}

static void was_opened(struct ledger_call *call, enum err err, struct ledger *l)
{
    struct ledger_reading *g = container_of(call, struct ledger_reading, call);
    g->ledger = l;
    if (!err && g->admin->closing)
        err = ERR_NOT_READY;
    if (err) {
        refuse(g, err);
        return;
    }
    if (g->last < 0 || g->last > ledger_last_confirmed(l))
        g->last = ledger_last_confirmed(l);
    begin(g);
}

/* A number from `least` on; absent: as it is.  False: it is none. */
static bool take_number(struct http_request *r, const char *key, int64_t least, int64_t *out)
{
    const char *word = http_query(r, key);
    return !word || (parse_i64(word, out) == ERR_OK && *out >= least);
}

/* -1 as the end: up to the last that is confirmed. */
static const char *what_is_wrong(struct http_request *r, struct ledger_reading *g)
{
    g->id = g->last = -1;
    if (!take_number(r, "ledger_id", 0, &g->id) || g->id < 0)
        return "ledger_id=N is needed";
    if (!take_number(r, "start_entry_id", 0, &g->next))
        return "start_entry_id is a number from 0 on";
    if (!take_number(r, "end_entry_id", -1, &g->last))
        return "end_entry_id is a number from 0 on; -1: to the end";
    if (!take_number(r, "page", -1, &g->page) || g->page > INT32_MAX)
        return "page is a number from 1 on";
    if (g->page > 0) {
        const int64_t first = (g->page - 1) * ENTRIES_A_PAGE, last = first + ENTRIES_A_PAGE - 1;
        g->next = g->next < first ? first : g->next;
        g->last = g->last < 0 || g->last > last ? last : g->last;
    } else {
        g->page = 0;
    }
    return g->last >= 0 && g->next > g->last ? "start_entry_id, end_entry_id and page conflict"
                                             : NULL;
}

static struct ledger_client *client_of(struct http_admin *a)
{
    const struct ledger_client_conf conf = {.add_timeout_us = ANSWER_US,
                                            .read_timeout_us = ANSWER_US};
    if (!a->client)
        a->client = ledger_client_new(a->loop, a->meta, &conf);
    return a->client;
}

/* ?ledger_id=N&start_entry_id=N&end_entry_id=N&page=N from 1 on.  Nobody is fenced: an open ledger
 * shows what is confirmed. */
void on_read_ledger(struct http_admin *a, struct http_request *r)
{
    struct ledger_reading asked = {.admin = a, .request = r};
    const char *wrong = what_is_wrong(r, &asked);
    if (wrong) {
        http_reply_reason(r, 400, "%s", wrong);
        return;
    }
    if (a->reads == READS_MAX) {
        http_reply_reason(r, 503, "%u ledgers are being read already", a->reads);
        return;
    }
    struct ledger_reading *g = mem_new(struct ledger_reading);
    *g = asked;
    a->reads++;
    http_calls_count(a, 1);
    g->call.done = was_opened;
    ledger_open(client_of(a), g->id, LEDGER_OPEN_READ, &g->call);
}

/* ---- the end of one -------------------------------------------------------------------------- */

static void note_ledger(struct inquiry *q, const struct meta_item *item)
{
    (void)item;
    q->counts[0]++;
}

static void tell_deleted(struct inquiry *q)
{
    http_reply_json_string(q->request, "Deleted ledger: %" PRId64, q->from);
}

static void delete_known(struct inquiry *q)
{
    if (q->counts[0] == 0) {
        http_reply_reason(q->request, 404, "there is no such ledger");
        return;
    }
    struct inquiry *gone = inquiry_new(q->admin, q->request);
    gone->finish = tell_deleted;
    gone->from = q->from;
    inquiry_remove(gone, q->key);
}

/* Its metadata goes; the bookies' garbage collection sees to the rest. */
void on_delete_ledger(struct http_admin *a, struct http_request *r)
{
    int64_t ledger = -1;
    if (!take_number(r, "ledger_id", 0, &ledger) || ledger < 0) {
        http_reply_reason(r, 400, "ledger_id=N is needed");
        return;
    }
    struct inquiry *q = inquiry_new(a, r);
    q->from = ledger;
    q->own = (struct question){q->key, ASK_KEY, note_ledger};
    if (path_ledger(ledger, q->key))
        inquiry_refuse(q, "ledger_id is too large");
    else
        inquiry_ask(q, &q->own, 1, delete_known);
}
