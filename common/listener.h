/* listener.h - an open port. */
#ifndef COMMON_LISTENER_H
#define COMMON_LISTENER_H

#include <stdint.h>

#include "common/err.h"
#include "common/loop.h"

struct listener;

typedef void listener_fn(void *ctx, int fd); /* gives fd: non-blocking, close-on-exec, TCP_NODELAY
                                                and keepalive set; runs on the listener's loop */

/* host NULL or "" is every address; port 0 picks a free one.  ERR_IO with a log event that
 * names the address when the port is in use. */
MUST_CHECK enum err listener_open(struct listener **out, struct loop *l, const char *host,
                                  uint16_t port, listener_fn *accepted, void *ctx);
uint16_t listener_port(const struct listener *l);
void listener_close(struct listener **l);

#endif
