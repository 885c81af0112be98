/* http_admin.h - what operators and probes ask a bookie over HTTP: alive, ready, metrics, state.
 *
 *   main.c --open--> STARTING --set(bookie)--> SERVING --set(NULL)--> STOPPING --close-->
 *                    alive, not ready          ready                  alive, not ready
 *
 * It is open before the bookie starts, so that a long replay looks like what it is and nobody
 * kills it.  Paths are those of BookKeeper's admin REST; http_routes.def has them all.
 *
 * Threads: open, set and close from no loop's; everything else on the loop given.
 */
#ifndef BOOKIE_HTTP_ADMIN_H
#define BOOKIE_HTTP_ADMIN_H

#include <stdint.h>

#include "bookie/bookie.h"

struct http_admin;

/* ERR_OK with *out NULL when the configuration asks for no HTTP; the log says which address
 * cannot be listened on.  Gives; conf, loop and meta outlive it. */
MUST_CHECK enum err http_admin_open(struct http_admin **out, const struct bookie_conf *conf,
                                    struct loop *loop, struct metadata *meta);
void http_admin_set(struct http_admin *a, struct bookie *b); /* borrows b until the next set */
uint16_t http_admin_port(const struct http_admin *a);
void http_admin_close(struct http_admin **a);

#endif
