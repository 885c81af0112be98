/* Garbage collection over HTTP: /api/v1/bookie/gc and what is below it, as BookKeeper has them; and
 * /api/v1/bookie/gc/state and gc/resume, which it has not. */
#include <inttypes.h>
#include <json-c/json.h>
#include <string.h>

#include "bookie/gc.h"
#include "bookie/http_inside.h"
#include "common/mem.h"

enum { JSON_DEPTH = 8 };

static struct gc *gc_of(const struct http_admin *a, struct http_request *r)
{
    return http_is_serving(a, r) ? bookie_gc(a->bookie) : NULL;
}

static const char *truth(bool b)
{
    return b ? "true" : "false";
}

static void reply(struct http_request *r, char *json) /* takes */
{
    http_reply(r, 200, "application/json", view_of(json, strlen(json)));
    mem_free(json);
}

/* A body may leave out what is false; false: it is no JSON. */
static bool flags_of(struct view body, const char *first, bool *a, const char *second, bool *b)
{
    struct json_tokener *tokener = json_tokener_new_ex(JSON_DEPTH);
    struct json_object *o = json_tokener_parse_ex(tokener, (const char *)body.base, (int)body.len),
                       *flag;
    const bool is_object = json_object_is_type(o, json_type_object);
    *a = is_object && json_object_object_get_ex(o, first, &flag) && json_object_get_boolean(flag);
    *b = is_object && json_object_object_get_ex(o, second, &flag) && json_object_get_boolean(flag);
    json_object_put(o);
    json_tokener_free(tokener);
    return is_object || body.len == 0;
}

void on_gc(struct http_admin *a, struct http_request *r)
{
    struct gc *g = gc_of(a, r);
    struct gc_state s;
    if (!g)
        return;
    gc_state(g, &s);
    reply(r, mem_format("{\"is_in_force_gc\":\"%s\"}", truth(s.is_forced)));
}

/* {"forceMajor":true, "forceMinor":true}; without a body all that can be taken back is. */
void on_run_gc(struct http_admin *a, struct http_request *r)
{
    struct gc *g = gc_of(a, r);
    const struct view body = http_body(r);
    bool major, minor;
    if (!g)
        return;
    if (!flags_of(body, "forceMajor", &major, "forceMinor", &minor)) {
        http_reply_reason(r, 400, "the body must be {\"forceMajor\": ..., \"forceMinor\": ...}");
        return;
    }
    if (body.len == 0)
        major = true;
    gc_run_now(g, major ? GC_MAJOR : minor ? GC_MINOR : GC_LISTING);
    reply(r, mem_format("\"Triggered GC on BookieServer: %s\"", bookie_name(a->bookie)));
}

void on_gc_details(struct http_admin *a, struct http_request *r)
{
    struct gc *g = gc_of(a, r);
    struct gc_state s;
    if (!g)
        return;
    gc_state(g, &s);
    reply(r, mem_format(
                 "[{\"forceCompacting\":%s,\"majorCompacting\":%s,\"minorCompacting\":%s,"
                 "\"lastMajorCompactionTime\":%" PRId64 ",\"lastMinorCompactionTime\":%" PRId64
                 ",\"majorCompactionCounter\":%" PRId64 ",\"minorCompactionCounter\":%" PRId64 "}]",
                 truth(s.is_forced), truth(s.is_major), truth(s.is_minor), s.last_major_ms,
                 s.last_minor_ms, s.majors, s.minors));
}

void on_gc_state(struct http_admin *a, struct http_request *r)
{
    struct gc *g = gc_of(a, r);
    struct gc_state s;
    if (!g)
        return;
    gc_state(g, &s);
    reply(r, mem_format("{\"halted\":%s,\"reason\":\"%s\",\"vanished\":%" PRIu64
                        ",\"ledgers\":%" PRIu64 ",\"trashed\":%" PRIu64 ",\"tombstones\":%" PRIu64
                        ",\"rounds\":%" PRId64 ",\"lastRound\":%" PRId64 ",\"running\":%s}",
                        truth(s.halt), gc_halt_text(s.halt), s.vanished, s.local, s.trashed,
                        s.tombs, s.listings, s.last_listing_ms, truth(s.is_forced)));
}

void on_resume_gc(struct http_admin *a, struct http_request *r)
{
    struct gc *g = gc_of(a, r);
    if (!g)
        return;
    gc_resume(g);
    http_reply_text(r, 200, "resumed\n");
}

void on_gc_suspended(struct http_admin *a, struct http_request *r)
{
    struct gc *g = gc_of(a, r);
    struct gc_state s;
    if (!g)
        return;
    gc_state(g, &s);
    reply(r, mem_format("{\"isMajorGcSuspended\":\"%s\",\"isMinorGcSuspended\":\"%s\"}",
                        truth(s.major_suspended), truth(s.minor_suspended)));
}

static void change(struct http_admin *a, struct http_request *r, const char *major_key,
                   const char *minor_key, void (*to)(struct gc *g, bool minor, bool major))
{
    struct gc *g = gc_of(a, r);
    bool major, minor;
    if (!g)
        return;
    if (!flags_of(http_body(r), major_key, &major, minor_key, &minor) || (!major && !minor)) {
        http_reply_reason(r, 400, "the body must have %s or %s, or both, true", major_key,
                          minor_key);
        return;
    }
    to(g, minor, major);
    on_gc_suspended(a, r);
}

void on_suspend_compaction(struct http_admin *a, struct http_request *r)
{
    change(a, r, "suspendMajor", "suspendMinor", gc_suspend);
}

void on_resume_compaction(struct http_admin *a, struct http_request *r)
{
    change(a, r, "resumeMajor", "resumeMinor", gc_unsuspend);
}
