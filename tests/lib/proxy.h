/* proxy.h - a TCP proxy that misbehaves when told to.
 *
 *   client --> proxy --> target       PROXY_PASS
 *                                     PROXY_SWALLOW: what the target answers is lost
 *                                     PROXY_CUT: connections are closed, new ones too
 *
 * Going back to PASS closes what was used meanwhile: half a stream is no stream, and an answer that
 * comes late must be lost too.
 *
 * Threads: its own; proxy_set() from any.
 */
#ifndef TESTS_LIB_PROXY_H
#define TESTS_LIB_PROXY_H

#include <stdint.h>

enum proxy_mode { PROXY_PASS, PROXY_SWALLOW, PROXY_CUT };

struct proxy;

struct proxy *proxy_open(uint16_t target);
uint16_t proxy_port(const struct proxy *p);
void proxy_set(struct proxy *p, enum proxy_mode mode); /* in force when it returns */
void proxy_close(struct proxy **p);

#endif
