/* What a bookie says over HTTP of the cluster, from the metadata store: bookies and ledgers. */
#include <inttypes.h>
#include <string.h>

#include "bookie/http_inquiry.h"
#include "common/mem.h"
#include "common/parse.h"
#include "metadata/paths.h"
#include "metadata/records.h"

enum { LEDGERS_A_PAGE = 100 };

/* ---- the cluster ----------------------------------------------------------------------------- */

enum { WRITABLE, READONLY, COOKIES, MARKS, AUDITORS, PAUSED };

static void count_bookie(struct inquiry *q, const struct meta_item *item)
{
    const char *id = item->key + strlen(PATH_BOOKIES);
    q->counts[strchr(id, '/') ? READONLY : WRITABLE]++;
}

static void count_cookie(struct inquiry *q, const struct meta_item *item)
{
    (void)item;
    q->counts[COOKIES]++;
}

static void count_mark(struct inquiry *q, const struct meta_item *item)
{
    (void)item;
    q->counts[MARKS]++;
}

static void note_auditor(struct inquiry *q, const struct meta_item *item)
{
    q->counts[AUDITORS]++;
    json_object_object_add(q->answer, "auditorId", http_auditor(item->value));
}

static void note_pause(struct inquiry *q, const struct meta_item *item)
{
    (void)item;
    q->counts[PAUSED]++;
}

static void add_count(struct inquiry *q, const char *name, uint64_t n)
{
    json_object_object_add(q->answer, name, json_object_new_uint64(n));
}

static void tell_cluster(struct inquiry *q)
{
    const uint64_t *c = q->counts, here = c[WRITABLE] + c[READONLY];
    struct json_object *o = q->answer;
    json_object_object_add(o, "auditorElected", json_object_new_boolean(c[AUDITORS] > 0));
    json_object_object_add(o, "clusterUnderReplicated", json_object_new_boolean(c[MARKS] > 0));
    json_object_object_add(o, "ledgerReplicationEnabled", json_object_new_boolean(!c[PAUSED]));
    add_count(q, "totalBookiesCount", c[COOKIES]);
    add_count(q, "writableBookiesCount", c[WRITABLE]);
    add_count(q, "readonlyBookiesCount", c[READONLY]);
    add_count(q, "unavailableBookiesCount", c[COOKIES] > here ? c[COOKIES] - here : 0);
    inquiry_reply(q);
}

void on_cluster_info(struct http_admin *a, struct http_request *r)
{
    static const struct question questions[] = {
        {PATH_BOOKIES, ASK_KEYS, count_bookie},       {PATH_COOKIES, ASK_KEYS, count_cookie},
        {PATH_UNDERREPLICATED, ASK_KEYS, count_mark}, {PATH_AUDITOR, ASK_KEY, note_auditor},
        {PATH_REPAIR_DISABLED, ASK_KEY, note_pause},
    };
    struct inquiry *q = inquiry_new(a, r);
    q->answer = json_object_new_object();
    inquiry_ask(q, questions, sizeof questions / sizeof questions[0], tell_cluster);
}

/* ---- ledgers --------------------------------------------------------------------------------- */

static const char *state_name(const Bookkeeper__LedgerMetadataFormat *m)
{
    return m->state == BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__OPEN          ? "OPEN"
           : m->state == BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__IN_RECOVERY ? "IN_RECOVERY"
                                                                                : "CLOSED";
}

static struct json_object *ensembles_of(const Bookkeeper__LedgerMetadataFormat *m)
{
    struct json_object *all = json_object_new_object();
    char first[24];
    for (size_t i = 0; i < m->n_segment; i++) {
        struct json_object *members = json_object_new_array();
        for (size_t k = 0; k < m->segment[i]->n_ensemblemember; k++)
            json_object_array_add(members,
                                  json_object_new_string(m->segment[i]->ensemblemember[k]));
        snprintf(first, sizeof first, "%" PRId64, m->segment[i]->firstentryid);
        json_object_object_add(all, first, members);
    }
    return all;
}

/* Without its password. */
static struct json_object *ledger_json(struct slice value)
{
    Bookkeeper__LedgerMetadataFormat *m;
    struct json_object *o = json_object_new_object();
    if (ledger_record_read(slice_view(value), &m)) {
        json_object_object_add(o, "error", json_object_new_string("it cannot be read"));
        return o;
    }
    json_object_object_add(o, "ensembleSize", json_object_new_int(m->ensemblesize));
    json_object_object_add(o, "writeQuorumSize", json_object_new_int(m->quorumsize));
    json_object_object_add(
        o, "ackQuorumSize",
        json_object_new_int(m->has_ackquorumsize ? m->ackquorumsize : m->quorumsize));
    json_object_object_add(o, "state", json_object_new_string(state_name(m)));
    json_object_object_add(o, "length", json_object_new_int64(m->length));
    json_object_object_add(o, "lastEntryId",
                           json_object_new_int64(m->has_lastentryid ? m->lastentryid : -1));
    json_object_object_add(o, "ctime", json_object_new_int64(m->has_ctime ? m->ctime : -1));
    json_object_object_add(o, "allEnsembles", ensembles_of(m));
    bookkeeper__ledger_metadata_format__free_unpacked(m, NULL);
    return o;
}

static void take_ledger(struct inquiry *q, const struct meta_item *item)
{
    int64_t ledger, at;
    char name[24];
    if (path_ledger_id(item->key, &ledger))
        return;
    at = (int64_t)q->counts[0]++;
    if (at < q->from || at >= q->to)
        return;
    snprintf(name, sizeof name, "%" PRId64, ledger);
    json_object_object_add(q->answer, name, item->value.len ? ledger_json(item->value) : NULL);
}

/* ?print_metadata=true, ?page=N from 1 on; without a page all of them. */
void on_ledgers(struct http_admin *a, struct http_request *r)
{
    static const struct question keys[] = {{PATH_LEDGERS "/", ASK_KEYS, take_ledger}},
                                 values[] = {{PATH_LEDGERS "/", ASK_VALUES, take_ledger}};
    const char *page = http_query(r, "page"), *with = http_query(r, "print_metadata");
    int64_t number = 0;
    if (page && (parse_i64(page, &number) || number < 1 || number > INT32_MAX)) {
        http_reply_reason(r, 400, "page is a number from 1 on");
        return;
    }
    struct inquiry *q = inquiry_new(a, r);
    q->answer = json_object_new_object();
    q->from = page ? (number - 1) * LEDGERS_A_PAGE : 0;
    q->to = page ? number * LEDGERS_A_PAGE : INT64_MAX;
    inquiry_ask(q, with && strcmp(with, "true") == 0 ? values : keys, 1, inquiry_reply);
}

static void tell_ledger(struct inquiry *q)
{
    if (json_object_object_length(q->answer) > 0)
        inquiry_reply(q);
    else
        http_reply_reason(q->request, 404, "there is no such ledger");
}

void on_ledger_metadata(struct http_admin *a, struct http_request *r)
{
    const char *id = http_query(r, "ledger_id");
    int64_t ledger;
    if (!id || parse_i64(id, &ledger) || ledger < 0) {
        http_reply_reason(r, 400, "ledger_id=N is needed");
        return;
    }
    struct inquiry *q = inquiry_new(a, r);
    q->answer = json_object_new_object();
    q->own = (struct question){q->key, ASK_KEY, take_ledger};
    if (path_ledger(ledger, q->key))
        inquiry_refuse(q, "ledger_id is too large");
    else
        inquiry_ask(q, &q->own, 1, tell_ledger);
}
