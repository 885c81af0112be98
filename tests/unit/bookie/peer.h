/* peer.h - a client that talks to a bookie over a blocking socket, one call a step. */
#ifndef TESTS_UNIT_BOOKIE_PEER_H
#define TESTS_UNIT_BOOKIE_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/bookie_frame.h"

struct peer {
    int fd;
    uint8_t frame[BOOKIE_FRAME_MAX + 64];
};

struct peer *peer_new(uint16_t port); /* gives */
void peer_drop(struct peer **p);

/* The key of a ledger: the same for all but `other`. */
void peer_key(bool other, uint8_t key[MASTER_KEY_SIZE]);
/* Payload of an entry: from its ids, so that it can be checked when it comes back. */
size_t peer_entry(int64_t ledger, int64_t entry, size_t payload, uint8_t *into);

void peer_send(struct peer *p, const void *bytes, size_t len);
void peer_send_add(struct peer *p, uint16_t flags, bool other_key, int64_t ledger, int64_t entry,
                   size_t payload);
void peer_send_read(struct peer *p, uint16_t flags, bool other_key, int64_t ledger, int64_t entry);
/* False: the connection has ended. */
bool peer_receive(struct peer *p, struct bookie_response *out);

int32_t peer_add(struct peer *p, uint16_t flags, int64_t ledger, int64_t entry, size_t payload);
/* Checks the entry when it is there. */
int32_t peer_read(struct peer *p, uint16_t flags, int64_t ledger, int64_t entry);

#endif
