/* door.h - a socket that listens: the part that listener and http share.
 *
 * host NULL or "" is every address, IPv4 and IPv6; port 0 picks a free one.  A failure is
 * logged with the address.
 */
#ifndef COMMON_DOOR_H
#define COMMON_DOOR_H

#include <stdint.h>

#include "common/err.h"

MUST_CHECK enum err door_open(int *fd, const char *host, uint16_t port); /* gives *fd */
uint16_t door_port(int fd);

#endif
