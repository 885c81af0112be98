/* wire.h - sockets over loopback, and an epoll whose events carry a number. */
#ifndef BENCH_CEILING_WIRE_H
#define BENCH_CEILING_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

int wire_listen(uint16_t *port); /* a free one */
int wire_connect(uint16_t port);
int wire_accept(int listener);
void wire_tune(int fd, bool blocking);                  /* no delay, 4 MiB buffers */
bool wire_send_all(int fd, const void *at, size_t len); /* false: the other end is gone */
void wire_wait(int fd, short events);

void wire_watch(int epoll, int fd, uint32_t tag, uint32_t events);
void wire_change(int epoll, int fd, uint32_t tag, uint32_t events);

#endif
