/* resolve.h - names to addresses without stopping a loop.
 *
 *   resolve_start -> queue -> [up to RESOLVERS threads] getaddrinfo -> loop_post -> done()
 *
 * Numeric addresses and "localhost" need no thread: resolve_now().
 *
 * Threads: start and cancel on the loop that gets the answer; a cancelled one never answers.
 */
#ifndef COMMON_RESOLVE_H
#define COMMON_RESOLVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/loop.h"

#define ADDRESSES_MAX 8

struct address {
    struct sockaddr_storage sa;
    socklen_t len;
};

struct addresses {
    unsigned n;
    struct address at[ADDRESSES_MAX];
};

struct resolve;
typedef void resolve_fn(void *ctx, const struct addresses *found); /* n == 0: no such host */

bool resolve_now(const char *host, uint16_t port, struct addresses *out);
bool resolve_wait(const char *host, uint16_t port, struct addresses *out); /* when starting only */
struct resolve *resolve_start(struct loop *l, const char *host, uint16_t port, resolve_fn *done,
                              void *ctx); /* gives; ends with done() or resolve_cancel() */
void resolve_cancel(struct resolve **r);  /* NULL is fine */

/* "1.2.3.4:5678", "[::1]:5678" */
void address_print(const struct sockaddr_storage *sa, char *into, size_t len);
#define ADDRESS_TEXT 64

#endif
