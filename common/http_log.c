#include "common/http_log.h"

#include <json-c/json.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/flight.h"
#include "common/log.h"
#include "common/mem.h"

enum { JSON_DEPTH = 8 };

void http_log_level(struct http_request *r)
{
    char *text = mem_format("{\"level\":\"%s\"}", log_level_name(log_level_now()));
    http_reply(r, 200, "application/json", view_of(text, strlen(text)));
    mem_free(text);
}

/* {"level": "debug"} */
static bool wanted(struct view body, enum log_level *out)
{
    struct json_tokener *tokener = json_tokener_new_ex(JSON_DEPTH);
    struct json_object *o = json_tokener_parse_ex(tokener, (const char *)body.base, (int)body.len),
                       *level;
    const bool found = json_object_is_type(o, json_type_object) &&
                       json_object_object_get_ex(o, "level", &level) &&
                       json_object_is_type(level, json_type_string) &&
                       log_level_of(json_object_get_string(level), out);
    json_object_put(o);
    json_tokener_free(tokener);
    return found;
}

void http_log_set_level(struct http_request *r)
{
    enum log_level level;
    if (!wanted(http_body(r), &level)) {
        http_reply_reason(r, 400, "the body must be {\"level\": \"debug\"}, info, warn or error");
        return;
    }
    log_event(LOG_ERROR, "log.level_changed", F_STR("from", log_level_name(log_level_now())),
              F_STR("to", log_level_name(level))); /* said whatever the levels are */
    log_set_level(level);
    http_log_level(r);
}

/* A dump goes to a file, since it must work in a crash, too. */
static bool dump(int fd, struct slab **out, size_t *len)
{
    flight_dump(fd);
    const off_t end = lseek(fd, 0, SEEK_END);
    if (end < 0)
        return false;
    *out = slab_new((size_t)end);
    *len = (size_t)end;
    if (pread(fd, slab_bytes(*out), *len, 0) == (ssize_t)*len)
        return true;
    slab_drop(out);
    return false;
}

void http_flight(struct http_request *r)
{
    struct slab *bytes = NULL;
    size_t len = 0;
    const int fd = memfd_create("flight", MFD_CLOEXEC);
    const bool done = fd >= 0 && dump(fd, &bytes, &len);
    if (fd >= 0)
        close(fd);
    if (done)
        http_reply(r, 200, "text/plain; charset=utf-8", view_of(slab_bytes(bytes), len));
    else
        http_reply_reason(r, 500, "the flight recorder cannot be read");
    slab_drop(&bytes);
}
