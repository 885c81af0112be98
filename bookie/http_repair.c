/* What a bookie says and does over HTTP about copies that were lost: ledgers that lack some, the
 * auditor, how long a bookie is waited for, bookies that are to be emptied. */
#include <inttypes.h>
#include <string.h>

#include "bookie/http_inquiry.h"
#include "common/mem.h"
#include "common/parse.h"
#include "metadata/paths.h"
#include "metadata/records.h"

static void reply_text(struct inquiry *q, char *text) /* takes text */
{
    http_reply_text(q->request, 200, text);
    mem_free(text);
}

/* ---- ledgers that lack copies ---------------------------------------------------------------- */

/* ?missingreplica=ID&excludingmissingreplica=ID */
static bool is_wanted(const struct http_request *r, const struct mark_record *m)
{
    const char *with = http_query(r, "missingreplica");
    const char *without = http_query(r, "excludingmissingreplica");
    return (!with || !*with || mark_record_has(m, with)) &&
           (!without || !*without || !mark_record_has(m, without));
}

static struct json_object *replicas_of(const struct mark_record *m)
{
    struct json_object *all = json_object_new_array();
    for (unsigned i = 0; i < m->n; i++)
        json_object_array_add(all, json_object_new_string(m->replicas[i]));
    return all;
}

static void take_mark(struct inquiry *q, const struct meta_item *item)
{
    struct mark_record m = {0};
    int64_t ledger;
    char name[24];
    if (path_mark_id(item->key, &ledger))
        return;
    const bool is_readable = mark_record_read(slice_view(item->value), &m) == ERR_OK;
    snprintf(name, sizeof name, "%" PRId64, ledger);
    const bool wanted = is_wanted(q->request, &m);
    if (wanted && json_object_is_type(q->answer, json_type_object))
        json_object_object_add(q->answer, name, replicas_of(&m));
    else if (wanted)
        json_object_array_add(q->answer, json_object_new_int64(ledger));
    if (is_readable)
        mark_record_drop(&m);
}

static void tell_marks(struct inquiry *q)
{
    const bool any = json_object_is_type(q->answer, json_type_object)
                         ? json_object_object_length(q->answer) > 0
                         : json_object_array_length(q->answer) > 0;
    if (any)
        inquiry_reply(q);
    else
        http_reply_reason(q->request, 404, "No under replicated ledgers found");
}

void on_under_replicated(struct http_admin *a, struct http_request *r)
{
    static const struct question questions[] = {{PATH_UNDERREPLICATED, ASK_VALUES, take_mark}};
    struct inquiry *q = inquiry_new(a, r);
    q->answer =
        http_query(r, "printmissingreplica") ? json_object_new_object() : json_object_new_array();
    inquiry_ask(q, questions, 1, tell_marks);
}

/* ---- who audits ------------------------------------------------------------------------------ */

/* It is a name in JSON. */
struct json_object *http_auditor(struct slice vote)
{
    const char *name = (const char *)vote.base;
    size_t len = vote.len;
    if (len >= 2 && name[0] == '"' && name[len - 1] == '"') {
        name++;
        len -= 2;
    }
    return json_object_new_string_len(name, (int)len);
}

static void take_auditor(struct inquiry *q, const struct meta_item *item)
{
    q->answer = http_auditor(item->value);
}

static void tell_auditor(struct inquiry *q)
{
    if (q->answer)
        reply_text(q, mem_format("Auditor: %s", json_object_get_string(q->answer)));
    else
        http_reply_reason(q->request, 404, "No auditor elected");
}

void on_auditor(struct http_admin *a, struct http_request *r)
{
    static const struct question questions[] = {{PATH_AUDITOR, ASK_KEY, take_auditor}};
    inquiry_ask(inquiry_new(a, r), questions, 1, tell_auditor);
}

/* ---- whether copies are made at all ---------------------------------------------------------- */

enum { PAUSED, AUDITORS };

static void note_pause(struct inquiry *q, const struct meta_item *item)
{
    (void)item;
    q->counts[PAUSED]++;
}

static void note_auditor(struct inquiry *q, const struct meta_item *item)
{
    (void)item;
    q->counts[AUDITORS]++;
}

static void tell_enabled(struct inquiry *q)
{
    q->answer = json_object_new_object();
    json_object_object_add(q->answer, "enabled", json_object_new_boolean(!q->counts[PAUSED]));
    inquiry_reply(q);
}

void on_repair_status(struct http_admin *a, struct http_request *r)
{
    static const struct question questions[] = {{PATH_REPAIR_DISABLED, ASK_KEY, note_pause}};
    inquiry_ask(inquiry_new(a, r), questions, 1, tell_enabled);
}

/* ?enabled=true|false */
void on_set_repair_status(struct http_admin *a, struct http_request *r)
{
    const char *word = http_query(r, "enabled");
    bool enabled;
    if (!word || parse_bool(word, &enabled)) {
        http_reply_reason(r, 400, "enabled=true or enabled=false is needed");
        return;
    }
    struct inquiry *q = inquiry_new(a, r);
    q->finish = tell_enabled;
    q->counts[PAUSED] = !enabled;
    if (enabled)
        inquiry_remove(q, PATH_REPAIR_DISABLED);
    else
        inquiry_put(q, PATH_REPAIR_DISABLED, (struct slice){0});
}

static void tell_triggered(struct inquiry *q)
{
    http_reply_text(q->request, 200, "Success trigger audit.");
}

static void trigger(struct inquiry *q)
{
    if (q->counts[PAUSED]) {
        http_reply_reason(q->request, 404, "Autorecovery is disabled. So giving up!");
        return;
    }
    if (!q->counts[AUDITORS]) {
        http_reply_reason(q->request, 404, "No auditor elected, though Autorecovery is enabled");
        return;
    }
    struct inquiry *put = inquiry_new(q->admin, q->request);
    put->finish = tell_triggered;
    inquiry_put(put, PATH_AUDIT_ASKED, (struct slice){0});
}

void on_trigger_audit(struct http_admin *a, struct http_request *r)
{
    static const struct question questions[] = {{PATH_REPAIR_DISABLED, ASK_KEY, note_pause},
                                                {PATH_AUDITOR, ASK_KEY, note_auditor}};
    inquiry_ask(inquiry_new(a, r), questions, 2, trigger);
}

/* ---- how long a lost bookie is waited for ---------------------------------------------------- */

static void take_delay(struct inquiry *q, const struct meta_item *item)
{
    q->answer = json_object_new_string_len((const char *)item->value.base, (int)item->value.len);
}

/* Of one that was never set, what each auditor is configured with: this bookie's, as a rule. */
static void tell_delay(struct inquiry *q)
{
    char *preset = mem_format("%" PRId64, q->admin->conf->lost_delay_s);
    reply_text(q, mem_format("lostBookieRecoveryDelay value: %s",
                             q->answer ? json_object_get_string(q->answer) : preset));
    mem_free(preset);
}

void on_delay(struct http_admin *a, struct http_request *r)
{
    static const struct question questions[] = {{PATH_REPAIR_DELAY, ASK_KEY, take_delay}};
    inquiry_ask(inquiry_new(a, r), questions, 1, tell_delay);
}

static void tell_delay_set(struct inquiry *q)
{
    reply_text(q, mem_format("Success set lostBookieRecoveryDelay to %" PRId64, q->from));
}

void on_set_delay(struct http_admin *a, struct http_request *r)
{
    struct json_object *body = http_json(r);
    struct json_object *seconds = http_json_member(body, "delay_seconds", json_type_int);
    const int64_t s = seconds ? json_object_get_int64(seconds) : -1;
    json_object_put(body);
    if (s < 0) {
        http_reply_reason(r, 400, "the body must be {\"delay_seconds\": N}");
        return;
    }
    struct inquiry *q = inquiry_new(a, r);
    char *text = mem_format("%" PRId64, s);
    q->finish = tell_delay_set;
    q->from = s;
    inquiry_put(q, PATH_REPAIR_DELAY, slice_copy(text, strlen(text)));
    mem_free(text);
}

/* ---- bookies that are to be emptied ---------------------------------------------------------- */

/* q->answer: who, an array; q->from: the next of them. */
enum { COOKIES, DROPS_COOKIE };

static const char *name_of(const struct inquiry *q)
{
    struct json_object *name = json_object_array_get_idx(q->answer, (size_t)q->from);
    return json_object_is_type(name, json_type_string) ? json_object_get_string(name) : NULL;
}

static void note_cookie(struct inquiry *q, const struct meta_item *item)
{
    (void)item;
    q->counts[COOKIES]++;
}

static void recover_next(const struct inquiry *q);

static void tell_decommission(struct inquiry *q)
{
    reply_text(q, mem_format("Success send decommission Bookie command %s", name_of(q)));
}

static void tell_recovery(struct inquiry *q)
{
    if ((size_t)q->from + 1 < json_object_array_length(q->answer))
        recover_next(q);
    else
        http_reply_text(q->request, 200, "Success send recovery request command.");
}

/* What a bookie is told by a key of its own: repair.h. */
static void leave(const struct inquiry *q, void (*told)(struct inquiry *q))
{
    if (q->counts[COOKIES] == 0) {
        http_reply_reason(q->request, 404, "%s has no cookie: it is no bookie of this cluster",
                          name_of(q));
        return;
    }
    struct inquiry *put = inquiry_new(q->admin, q->request);
    put->finish = told;
    put->answer = json_object_get(q->answer);
    put->from = q->from;
    put->counts[DROPS_COOKIE] = q->counts[DROPS_COOKIE];
    char *key = mem_format(PATH_LEAVING "%s", name_of(q));
    inquiry_put(put, key,
                q->counts[DROPS_COOKIE] ? slice_copy(LEAVING_COOKIE, strlen(LEAVING_COOKIE))
                                        : (struct slice){0});
    mem_free(key);
}

static void decommission(struct inquiry *q)
{
    leave(q, tell_decommission);
}

static void recover(struct inquiry *q)
{
    leave(q, tell_recovery);
}

static void ask_cookie(struct inquiry *q, void (*then)(struct inquiry *q))
{
    q->own = (struct question){q->key, ASK_KEY, note_cookie};
    if (name_of(q) && path_cookie(name_of(q), q->key) == ERR_OK)
        inquiry_ask(q, &q->own, 1, then);
    else
        inquiry_refuse(q, "bookie_src names none, or what cannot be a bookie's id");
}

static void recover_next(const struct inquiry *before)
{
    struct inquiry *q = inquiry_new(before->admin, before->request);
    q->answer = json_object_get(before->answer);
    q->from = before->from + 1;
    q->counts[DROPS_COOKIE] = before->counts[DROPS_COOKIE];
    ask_cookie(q, recover);
}

static struct inquiry *leaving_new(struct http_admin *a, struct http_request *r,
                                   struct json_object *body)
{
    struct inquiry *q = inquiry_new(a, r);
    q->counts[DROPS_COOKIE] = http_json_flag(body, "delete_cookie");
    return q;
}

/* {"bookie_src": "ID", "delete_cookie": "true"}: the last is the auditor's, when it is empty. */
void on_decommission(struct http_admin *a, struct http_request *r)
{
    struct json_object *body = http_json(r);
    struct json_object *name = http_json_member(body, "bookie_src", json_type_string);
    struct inquiry *q = leaving_new(a, r, body);
    q->answer = json_object_new_array();
    if (name)
        json_object_array_add(q->answer, json_object_get(name));
    json_object_put(body);
    ask_cookie(q, decommission);
}

/* {"bookie_src": ["ID", ...], "delete_cookie": true}: of one that is lost, what a lost one gets
 * anyway; of one that runs, the same as a decommission. */
void on_recover(struct http_admin *a, struct http_request *r)
{
    struct json_object *body = http_json(r);
    struct json_object *names = http_json_member(body, "bookie_src", json_type_array);
    struct inquiry *q = leaving_new(a, r, body);
    q->answer = names ? json_object_get(names) : json_object_new_array();
    json_object_put(body);
    ask_cookie(q, recover);
}
