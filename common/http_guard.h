/* http_guard.h - how many HTTP connections there are, and which of them ask nothing.
 *
 *   accepted --> being asked for --> a whole request --> answered --\
 *                   ^    \-- patience is over: cut off              |
 *                   \-----------------------------------------------/
 *
 * libevent tells neither when a connection ends nor for how long a request has been coming: a
 * byte a minute keeps one for ever.  So each is known by its socket (descriptor and inode, which
 * no later one has), looked at once a second, and cut off by shutdown(), which libevent takes for
 * the client's end.
 *
 * Threads: the loop's.
 * Limits:  `max` connections; then the door stays shut and others wait in the kernel.
 */
#ifndef COMMON_HTTP_GUARD_H
#define COMMON_HTTP_GUARD_H

#include <event2/bufferevent.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/list.h"
#include "common/loop.h"

struct http_guard {
    struct loop *loop;
    unsigned max, n;
    uint64_t patience_us;
    struct list_node visitors;
    struct timer meet, round;
};

void http_guard_init(struct http_guard *g, struct loop *l, unsigned max, uint64_t patience_us);
void http_guard_drop(struct http_guard *g);
void http_guard_came(struct http_guard *g, struct bufferevent *b); /* accepted just now */
void http_guard_asked(struct http_guard *g, int fd);               /* a whole request is there */
void http_guard_answered(struct http_guard *g, int fd);
bool http_guard_is_full(struct http_guard *g);

#endif
