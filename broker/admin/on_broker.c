/* Is it alive, what is it, what has it counted. */
#include "broker/admin/health.h"
#include "broker/broker.h"
#include "broker/metrics.h"
#include "common/http_log.h"

void on_status(struct admin *a, struct http_request *r, const struct segments_of_path *p)
{
    (void)a, (void)p;
    http_reply_text(r, 200, "OK");
}

void on_health(struct admin *a, struct http_request *r, const struct segments_of_path *p)
{
    (void)p;
    health_ask(a->health, r);
}

void on_ready(struct admin *a, struct http_request *r, const struct segments_of_path *p)
{
    (void)a, (void)p;
    http_reply_text(r, 200, "ok");
}

void on_version(struct admin *a, struct http_request *r, const struct segments_of_path *p)
{
    (void)a, (void)p;
    http_reply_text(r, 200, LGM_VERSION);
}

void on_log_level(struct admin *a, struct http_request *r, const struct segments_of_path *p)
{
    (void)a, (void)p;
    http_log_level(r);
}

void on_set_log_level(struct admin *a, struct http_request *r, const struct segments_of_path *p)
{
    (void)a, (void)p;
    http_log_set_level(r);
}

void on_flight(struct admin *a, struct http_request *r, const struct segments_of_path *p)
{
    (void)a, (void)p;
    http_flight(r);
}
