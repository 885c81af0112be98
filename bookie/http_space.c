/* What the disks of all bookies have: GET /api/v1/bookie/list_bookie_info.
 *
 *   the registered ones of the metadata store --GET_BOOKIE_INFO--> each, at once --> the answer
 *
 * Who does not answer is not in it. */
#include <inttypes.h>
#include <string.h>

#include "bookie/http_inquiry.h"
#include "common/log.h"
#include "common/mem.h"
#include "ledger/bookie_link.h"
#include "metadata/paths.h"
#include "metadata/records.h"
#include "proto/bookie_v3.h"

enum { BOOKIES_MAX = 1000, ANSWER_US = 5 * 1000 * 1000, SIZE_TEXT = 48 };

struct survey;

struct asked {
    struct survey *survey;
    char *id;
    struct bookie_link *link;
    struct link_request request;
    bool answered;
    uint64_t free_bytes, total;
};

struct survey {
    struct http_admin *admin;
    struct http_request *request;
    unsigned n, waiting;
    struct asked *at[BOOKIES_MAX];
    struct task over; /* links are not dropped from one of their calls */
};

/* ---- the answer ------------------------------------------------------------------------------ */

/* Down to a thousandth of the unit, as BookKeeper writes it: 1234567(1.234MB). */
static void write_size(char out[SIZE_TEXT], uint64_t bytes)
{
    static const char *const units[] = {"", "KB", "MB", "GB", "TB"};
    unsigned unit = 0, digits = 3;
    uint64_t scale = 1;
    for (uint64_t left = bytes; left >= 1000 && unit < 4; left /= 1000)
        scale *= unit++ > 0 ? 1000 : 1;
    const uint64_t whole = bytes / scale / 1000;
    unsigned fraction = (unsigned)(bytes / scale % 1000);
    for (; fraction > 0 && fraction % 10 == 0; digits--)
        fraction /= 10;
    if (unit == 0)
        snprintf(out, SIZE_TEXT, "%" PRIu64, bytes);
    else if (fraction == 0)
        snprintf(out, SIZE_TEXT, "%" PRIu64 "(%" PRIu64 "%s)", bytes, whole, units[unit]);
    else
        snprintf(out, SIZE_TEXT, "%" PRIu64 "(%" PRIu64 ".%0*u%s)", bytes, whole, (int)digits,
                 fraction, units[unit]);
}

static void add_sizes(struct json_object *o, const char *name, const char *before,
                      const char *behind, uint64_t free_bytes, uint64_t total)
{
    char left[SIZE_TEXT], all[SIZE_TEXT];
    write_size(left, free_bytes);
    write_size(all, total);
    char *text = mem_format("%s{Free: %s, Total: %s}%s", before, left, all, behind);
    json_object_object_add(o, name, json_object_new_string(text));
    mem_free(text);
}

static void reply(struct survey *s)
{
    struct json_object *o = json_object_new_object();
    uint64_t free_bytes = 0, total = 0;
    for (unsigned i = 0; i < s->n; i++) {
        const struct asked *k = s->at[i];
        if (!k->answered)
            continue;
        add_sizes(o, k->id, ": ", ",", k->free_bytes, k->total);
        free_bytes += k->free_bytes;
        total += k->total;
    }
    if (json_object_object_length(o) == 0) {
        json_object_put(o);
        http_reply_reason(s->request, 404, "Not found any Bookie info.");
        return;
    }
    add_sizes(o, "ClusterInfo: ", "", "", free_bytes, total);
    http_reply_json(s->request, o);
}

static void drop(struct survey *s)
{
    struct http_admin *a = s->admin;
    for (unsigned i = 0; i < s->n; i++) {
        if (s->at[i]->link)
            link_drop(&s->at[i]->link);
        mem_free(s->at[i]->id);
        mem_free(s->at[i]);
    }
    mem_free(s);
    a->asks_bookies = false;
    http_calls_count(a, -1);
}

static void end(struct task *t)
{
    struct survey *s = container_of(t, struct survey, over);
    reply(s);
    drop(s);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void one_less(struct survey *s)
{
    if (--s->waiting > 0)
        return;
    s->over.run = end;
    loop_post(s->admin->loop, &s->over);
}

static void answered(struct link_request *request, enum err err, struct slice body)
{
    struct asked *k = container_of(request, struct asked, request);
    if (!err)
        err = bookie_info_read(slice_view(body), &k->free_bytes, &k->total);
    if (err)
        log_event(LOG_WARN, "bookie.space_unknown", F_STR("bookie", k->id), F_ERR(err));
    k->answered = !err;
    one_less(k->survey);
}

static void ask(struct survey *s, const char *id, struct json_object *place)
{
    static const struct link_conf conf = {.add_timeout_us = ANSWER_US,
                                          .read_timeout_us = ANSWER_US};
    struct asked *k = mem_new(struct asked);
    k->survey = s;
    k->id = mem_string(id);
    k->link = link_new(s->admin->loop, id, &conf);
    k->request.done = answered;
    s->at[s->n++] = k;
    s->waiting++;
    link_set_address(k->link, json_object_get_string(json_object_array_get_idx(place, 0)),
                     (uint16_t)json_object_get_int(json_object_array_get_idx(place, 1)));
    link_info(k->link, &k->request);
}

static void ask_all(struct inquiry *q)
{
    struct survey *s = mem_new(struct survey);
    s->admin = q->admin;
    s->request = q->request;
    s->waiting = 1;
    q->admin->asks_bookies = true;
    http_calls_count(q->admin, 1);
    json_object_object_foreach(q->answer, id, place)
    {
        if (s->n < BOOKIES_MAX)
            ask(s, id, place);
    }
    one_less(s);
}

/* One that is just becoming read-only is in both lists. */
static void note_bookie(struct inquiry *q, const struct meta_item *item)
{
    struct bookie_record record;
    const char *id = item->key + strlen(PATH_BOOKIES);
    if (strncmp(item->key, PATH_BOOKIES_READONLY, strlen(PATH_BOOKIES_READONLY)) == 0)
        id = item->key + strlen(PATH_BOOKIES_READONLY);
    if (!*id || bookie_record_read(id, slice_view(item->value), &record))
        return;
    struct json_object *place = json_object_new_array();
    json_object_array_add(place, json_object_new_string(record.host));
    json_object_array_add(place, json_object_new_int(record.port));
    json_object_object_add(q->answer, id, place);
    bookie_record_drop(&record);
}

void on_list_bookie_info(struct http_admin *a, struct http_request *r)
{
    static const struct question questions[] = {{PATH_BOOKIES, ASK_VALUES, note_bookie}};
    if (a->asks_bookies) {
        http_reply_reason(r, 503, "the bookies are just being asked: again in a moment");
        return;
    }
    struct inquiry *q = inquiry_new(a, r);
    q->answer = json_object_new_object();
    inquiry_ask(q, questions, 1, ask_all);
}
