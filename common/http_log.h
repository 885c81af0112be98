/* http_log.h - the log of a process that runs, over HTTP: how much it says, and what it did last.
 *
 *   GET  the level                 {"level": "info"}
 *   PUT  {"level": "debug"}        from now on, until a restart
 *   GET  the flight recorder       flight.h, as text
 *
 * Threads: the server's loop.
 * Limits:  what the flight recorder holds is in memory once more while it is sent.
 */
#ifndef COMMON_HTTP_LOG_H
#define COMMON_HTTP_LOG_H

#include "common/http.h"

void http_log_level(struct http_request *r);     /* answers GET */
void http_log_set_level(struct http_request *r); /* answers PUT */
void http_flight(struct http_request *r);

#endif
