/* bookie_v3.h - version 3 of the BookKeeper protocol, without the first length (conn.h cuts it
 * off).
 *
 * A frame is a protobuf Request (bookkeeper.proto) and begins with 0x0a.  It is read by hand into
 * what version 2 says, with the rest beside it, so that entries are not copied; an answer is
 * written as a front, behind which the entry goes as it is.
 * Facts: bookkeeper.md A.6 and A.7.
 */
#ifndef PROTO_BOOKIE_V3_H
#define PROTO_BOOKIE_V3_H

#include "proto/bookie_frame.h"

/* In bookie_request.op beside those of bookie_frame.h; no version 2 frame has them. */
enum {
    BOOKIE_NOTHING = 0, /* an operation that is not done, or one without its message */
    BOOKIE_READ_LAC = 4,
    BOOKIE_WRITE_LAC = 5,
    BOOKIE_INFO = 6,
    BOOKIE_FORCE = 8,
    BOOKIE_LIST = 9,
    BOOKIE_START_TLS = 10,
};

enum { BOOKIE_VERSION_3 = 3, BOOKIE_V3_FIRST_BYTE = 0x0a };

/* An explicit LAC: ledger, LAC and the longest digest; not longer here. */
enum { EXPLICIT_LAC_MAX = 48 };

enum { BOOKIE_INFO_TOTAL = 1, BOOKIE_INFO_FREE = 2 };

/* What only version 3 asks. */
struct bookie_v3 {
    uint8_t operation; /* as it came: the answer repeats it, and the next */
    uint64_t txn;
    bool waits;       /* READ: until more than previous_lac is known, for timeout_ms */
    bool wants_next;  /* READ: the entry behind previous_lac comes with it */
    bool is_deferred; /* ADD: answered before it is synced */
    int64_t previous_lac;
    int64_t timeout_ms;
    int64_t lac;       /* WRITE_LAC */
    int64_t requested; /* INFO: BOOKIE_INFO_* */
};

/* out->version is BOOKIE_VERSION_3, out->body an ADD's entry or a LAC's body.  ERR_MALFORMED: no
 * Request; ERR_UNSUPPORTED_VERSION with operation and txn filled.  Borrows. */
MUST_CHECK enum err bookie_v3_read(struct view frame, struct bookie_request *out,
                                   struct bookie_v3 *v3);
int32_t bookie_v3_status(int32_t status); /* a bookie_status as version 3 numbers it */

struct bookie_v3_answer {
    uint8_t operation;
    uint64_t txn;
    int32_t status; /* enum bookie_status */
    int64_t ledger;
    int64_t entry;
    bool has_lac; /* READ: max_lac is known */
    int64_t max_lac;
    struct view small;         /* READ_LAC: the explicit one; AUTH: the plugin's name */
    int64_t total, free_space; /* INFO; negative: not asked for */
    size_t body_len;           /* READ, READ_LAC: the entry; LIST: entry_list.h; sent behind */
};

/* What a client asks of a bookie's disks, with the length in front; gives.  And what comes back:
 * ERR_MALFORMED, or what the bookie says. */
struct slice bookie_info_request(void);
MUST_CHECK enum err bookie_info_read(struct view frame, uint64_t *free_space, uint64_t *total);

/* With the length in front; gives how long it is. */
enum { BOOKIE_V3_FRONT = 192 };
size_t bookie_v3_write(uint8_t into[BOOKIE_V3_FRONT], const struct bookie_v3_answer *a);

#endif
