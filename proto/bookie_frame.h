/* bookie_frame.h - the BookKeeper v2 protocol, without the first length (conn.h cuts it off).
 *
 * The first body byte tells the version: 0x0a is a v3 protobuf Request, 0..2 is v0..v2.
 * Facts: bookkeeper.md A.1 to A.5, vectors A.11.
 */
#ifndef PROTO_BOOKIE_FRAME_H
#define PROTO_BOOKIE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "proto/entry.h"

/* The largest message of a Pulsar client, and room for its headers and ours. */
enum { BOOKIE_FRAME_MAX = 5 * 1024 * 1024 + 10 * 1024 };

enum bookie_op {
    BOOKIE_ADD = 1,
    BOOKIE_READ = 2,
    BOOKIE_AUTH = 3,
    BOOKIE_BATCH_READ = 7,
};

enum { BOOKIE_DO_FENCING = 1, BOOKIE_RECOVERY_ADD = 2, BOOKIE_HIGH_PRIORITY = 4 };

/* Status codes on the wire. */
enum bookie_status {
    BOOKIE_OK = 0,
    BOOKIE_NO_LEDGER = 1,
    BOOKIE_NO_ENTRY = 2,
    BOOKIE_BAD_REQUEST = 100,
    BOOKIE_EIO = 101,
    BOOKIE_EUA = 102,
    BOOKIE_BAD_VERSION = 103,
    BOOKIE_FENCED = 104,
    BOOKIE_READ_ONLY = 105,
    BOOKIE_TOO_MANY = 106,
    BOOKIE_UNKNOWN = 107, /* limbo; in version 2 it is EIO: its clients know no other */
};
enum err bookie_status_to_err(int32_t status); /* unknown ones: ERR_IO */

struct bookie_request {
    uint8_t version;
    uint8_t op;
    uint16_t flags;
    int64_t ledger;
    int64_t entry; /* -1: the last one (READ) */
    bool has_key;
    uint8_t key[MASTER_KEY_SIZE];
    struct view body;   /* ADD: the whole entry; AUTH: a serialized AuthMessage */
    int64_t request_id; /* BATCH_READ, as the next two */
    int32_t max_count;
    int64_t max_size;
};
/* ERR_UNSUPPORTED_VERSION for a version above 2 with op, ledger and entry filled where they
 * could be read; ERR_MALFORMED for unknown ops and short frames.  Borrows. */
MUST_CHECK enum err bookie_request_read(struct view frame, struct bookie_request *out);

struct bookie_response {
    uint8_t version;
    uint8_t op;
    int32_t status;
    int64_t ledger;
    int64_t entry;    /* as asked for: -1 stays -1 */
    struct view body; /* READ: the stored entry; AUTH: the AuthMessage;
                       * BATCH_READ: i64 request id, then i32 length and entry each */
};
MUST_CHECK enum err bookie_response_read(struct view frame, struct bookie_response *out);

/* Writers: with the length in front, ready for conn_send().  Those whose body follows
 * (entry_len, body_len) write only the front; the body is sent behind it. */
enum {
    BOOKIE_ADD_FRONT = 28,
    BOOKIE_READ_SIZE = 24,
    BOOKIE_FENCE_SIZE = 44,
    BOOKIE_BATCH_SIZE = 44,
    BOOKIE_RESPONSE_SIZE = 28,
    BOOKIE_BATCH_ID = 8,    /* stands before the entries in the body of a BATCH_READ's response, */
    BOOKIE_BATCH_LENGTH = 4 /* and this before each */
};
void bookie_write_add(uint8_t into[BOOKIE_ADD_FRONT], uint16_t flags,
                      const uint8_t key[MASTER_KEY_SIZE], size_t entry_len);
/* flags with BOOKIE_DO_FENCING writes BOOKIE_FENCE_SIZE bytes, else BOOKIE_READ_SIZE. */
size_t bookie_write_read(uint8_t into[BOOKIE_FENCE_SIZE], uint16_t flags, int64_t ledger,
                         int64_t entry, const uint8_t key[MASTER_KEY_SIZE]);
/* An answer of at most max_size bytes, its length in front counted, or of one entry. */
void bookie_write_batch_read(uint8_t into[BOOKIE_BATCH_SIZE], int64_t ledger, int64_t first,
                             int64_t request_id, int32_t max_count, int64_t max_size);
/* Of the body of a BATCH_READ's response: first its id, then one entry after the other; `rest` is
 * what follows.  ERR_END: there are no more.  Borrows. */
MUST_CHECK enum err bookie_batch_id(struct view *rest, int64_t *request_id);
MUST_CHECK enum err bookie_batch_next(struct view *rest, struct view *entry);
void bookie_write_response(uint8_t into[BOOKIE_RESPONSE_SIZE], uint8_t version, uint8_t op,
                           int32_t status, int64_t ledger, int64_t entry, size_t body_len);
struct slice bookie_auth_request(void); /* gives: plugin "", no payload */
struct slice bookie_auth_response(uint8_t version, const char *plugin); /* gives; empty payload */

#endif
