/* bookie_link.h - one connection to a bookie, with many requests under way.
 *
 *   request --frame--> conn (one writev a round) --> bookie
 *   done()  <--match by (operation, ledger, entry)-- reply | deadline | connection lost
 *
 * It dials when it is first needed, introduces itself (AUTH), and after a failure rests a while
 * before it dials again: requests made then fail soon, so that another replica is asked.
 *
 * Replies are told apart by operation, ledger and entry only, so one link must not carry both
 * plain and fencing reads of an entry: the answer to one would be taken for the other's.  A
 * bookie has a link for each (bookies.h).  Batch reads have a number besides.
 *
 * BookKeeper answers batch reads from 4.17 on; one before closes the connection, with all that is
 * under way on it.  So they go over a link of their own, and one that was closed over them is
 * asked for no more for a while, unless it has answered some before.
 *
 * Memory:  a request is embedded in its owner and stays put until done() or link_cancel(); the
 *          bytes of an add are taken.
 * Threads: the loop's.  done() never comes in the caller's stack.
 * Limits:  conf.add_bytes_max of adds without an answer, with what each costs besides its bytes,
 *          and LINK_BYTES_MAX waiting for the socket; then requests fail with ERR_BUSY.
 */
#ifndef LEDGER_BOOKIE_LINK_H
#define LEDGER_BOOKIE_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "common/list.h"
#include "common/loop.h"
#include "ledger/quorum.h"
#include "proto/bookie_frame.h"

enum { LINK_BYTES_MAX = 256 * 1024 * 1024 };

struct bookie_link;
struct tls;

struct link_conf {
    uint64_t add_timeout_us, read_timeout_us;
    size_t add_bytes_max; /* 0: LINK_BYTES_MAX */
    struct tls *tls;
};

struct link_request {
    /* `body` is the stored entry of a read, or what bookie_batch_next() takes apart; borrowed.
     * err is what the bookie said, or TIMEOUT, IO, BUSY, NOT_READY; UNSUPPORTED_VERSION of a batch
     * read: it does not seem to know any. */
    void (*done)(struct link_request *q, enum err err, struct slice body);
    struct bookie_link *link; /* private, as what follows */
    int64_t ledger;
    entry_id entry;
    int64_t number; /* of a batch read */
    uint64_t due_us;
    enum err err;
    uint32_t size; /* of an add under way */
    uint8_t op;
    struct list_node by_key, by_time;
};

/* `name` is for the log; gives. */
struct bookie_link *link_new(struct loop *l, const char *name, const struct link_conf *conf);
/* Where the bookie is, as soon as that is known, and whenever it changes: rest is over then. */
void link_set_address(struct bookie_link *b, const char *host, uint16_t port);
void link_drop(struct bookie_link **b); /* without requests; not from a done() */

/* An add: `front` is its frame from bookie_write_add() on, up to where `rest` begins; a full chain
 * has no room for a front.  Shares. */
void link_add(struct bookie_link *b, struct link_request *q, int64_t ledger, entry_id e,
              struct view front, const struct chain *rest);
void link_read(struct bookie_link *b, struct link_request *q, uint16_t flags, int64_t ledger,
               entry_id e, const uint8_t key[MASTER_KEY_SIZE]);
/* Of `n` entries from `first` on those that follow each other there, in max_bytes at most. */
void link_read_batch(struct bookie_link *b, struct link_request *q, int64_t ledger, entry_id first,
                     unsigned n, size_t max_bytes);
bool link_takes_batches(const struct bookie_link *b); /* as far as is known */
/* What it has of disks, one at a time: `body` of the answer is for bookie_info_read(). */
void link_info(struct bookie_link *b, struct link_request *q);
/* It could not be reached a moment ago: requests fail at once. */
bool link_is_down(const struct bookie_link *b);
void link_cancel(struct link_request *q); /* no done(); a request at rest is fine */

#endif
