/* Garbage collection over HTTP: /api/v1/bookie/gc and what is below it, as BookKeeper has them; and
 * /api/v1/bookie/gc/state and gc/resume, which it has not. */
#include <inttypes.h>
#include <string.h>

#include "bookie/gc.h"
#include "bookie/http_inside.h"
#include "common/mem.h"

static struct gc *gc_of(const struct http_admin *a, struct http_request *r)
{
    return http_is_serving(a, r) ? bookie_gc(a->bookie) : NULL;
}

static const char *truth(bool b)
{
    return b ? "true" : "false";
}

/* A body may leave out what is false; false: it is no JSON. */
static bool flags_of(struct http_request *r, const char *first, bool *a, const char *second,
                     bool *b)
{
    struct json_object *o = http_json(r);
    const bool is_object = json_object_is_type(o, json_type_object);
    *a = is_object && http_json_flag(o, first);
    *b = is_object && http_json_flag(o, second);
    json_object_put(o);
    return is_object || http_body(r).len == 0;
}

void on_gc(struct http_admin *a, struct http_request *r)
{
    struct gc *g = gc_of(a, r);
    struct gc_state s;
    if (!g)
        return;
    gc_state(g, &s);
    http_reply_json_text(r, mem_format("{\"is_in_force_gc\":\"%s\"}", truth(s.is_forced)));
}

/* {"forceMajor":true, "forceMinor":true}; without a body all that can be taken back is. */
void on_run_gc(struct http_admin *a, struct http_request *r)
{
    struct gc *g = gc_of(a, r);
    const struct view body = http_body(r);
    bool major, minor;
    if (!g)
        return;
    if (!flags_of(r, "forceMajor", &major, "forceMinor", &minor)) {
        http_reply_reason(r, 400, "the body must be {\"forceMajor\": ..., \"forceMinor\": ...}");
        return;
    }
    if (body.len == 0)
        major = true;
    gc_run_now(g, major ? GC_MAJOR : minor ? GC_MINOR : GC_LISTING);
    http_reply_json_string(r, "Triggered GC on BookieServer: %s", bookie_name(a->bookie));
}

void on_gc_details(struct http_admin *a, struct http_request *r)
{
    struct gc *g = gc_of(a, r);
    struct gc_state s;
    if (!g)
        return;
    gc_state(g, &s);
    http_reply_json_text(
        r, mem_format("[{\"forceCompacting\":%s,\"majorCompacting\":%s,\"minorCompacting\":%s,"
                      "\"lastMajorCompactionTime\":%" PRId64 ",\"lastMinorCompactionTime\":%" PRId64
                      ",\"majorCompactionCounter\":%" PRId64 ",\"minorCompactionCounter\":%" PRId64
                      "}]",
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
    http_reply_json_text(
        r, mem_format("{\"halted\":%s,\"reason\":\"%s\",\"vanished\":%" PRIu64
                      ",\"ledgers\":%" PRIu64 ",\"trashed\":%" PRIu64 ",\"tombstones\":%" PRIu64
                      ",\"rounds\":%" PRId64 ",\"lastRound\":%" PRId64 ",\"running\":%s}",
                      truth(s.halt), gc_halt_text(s.halt), s.vanished, s.local, s.trashed, s.tombs,
                      s.listings, s.last_listing_ms, truth(s.is_forced)));
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
    http_reply_json_text(r,
                         mem_format("{\"isMajorGcSuspended\":\"%s\",\"isMinorGcSuspended\":\"%s\"}",
                                    truth(s.major_suspended), truth(s.minor_suspended)));
}

/* What is done to which of the two, in BookKeeper's words. */
struct change {
    const char *done, *major_key, *minor_key;
    void (*to)(struct gc *g, bool minor, bool major);
};

static void change(struct http_admin *a, struct http_request *r, const struct change *c)
{
    struct gc *g = gc_of(a, r);
    bool major, minor;
    if (!g)
        return;
    if (!flags_of(r, c->major_key, &major, c->minor_key, &minor) || (!major && !minor)) {
        http_reply_reason(r, 400, "the body must have %s or %s, or both, true", c->major_key,
                          c->minor_key);
        return;
    }
    c->to(g, minor, major);
    const char *name = bookie_name(a->bookie);
    if (major && minor)
        http_reply_json_string(r, "%s majorGC on BookieServer: %s, %s minorGC on BookieServer: %s",
                               c->done, name, c->done, name);
    else
        http_reply_json_string(r, "%s %s on BookieServer: %s", c->done,
                               major ? "majorGC" : "minorGC", name);
}

void on_suspend_compaction(struct http_admin *a, struct http_request *r)
{
    static const struct change c = {"Suspend", "suspendMajor", "suspendMinor", gc_suspend};
    change(a, r, &c);
}

void on_resume_compaction(struct http_admin *a, struct http_request *r)
{
    static const struct change c = {"Resume", "resumeMajor", "resumeMinor", gc_unsuspend};
    change(a, r, &c);
}
