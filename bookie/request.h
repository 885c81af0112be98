/* request.h - one request on its way: made where its connection is, worked on where its ledger is.
 *
 *   session's loop --request_send--> ledger's loop --request_finish--> session's loop: answer
 *
 * An add that the journal took goes from the journal straight to the session's loop.
 *
 * Memory:  a request holds its session until it has been answered; both are made and ended on
 *          the session's loop, and requests are kept there for reuse.
 * Threads: `from` is the session's station, `at` the ledger's: each only on its own loop.
 */
#ifndef BOOKIE_REQUEST_H
#define BOOKIE_REQUEST_H

#include <stdatomic.h>

#include "bookie/handlers.h"
#include "common/conn.h"
#include "common/list.h"
#include "proto/bookie_frame.h"

/* What the handlers keep on each loop. */
struct station {
    struct handlers *handlers;
    struct loop *loop;
    struct list_node sessions;
    struct list_node answered; /* sessions whose answers wait to be sent */
    struct round_end round_end;
    struct list_node parked; /* adds */
    uint64_t parked_bytes;
    struct timer parked_timer;
    bool parked_told; /* logged, once until nothing is parked */
    unsigned pending_reads;
    struct list_node idle; /* requests to be used again */
    unsigned idle_n;
    bool is_closed;
};

struct handlers {
    struct handlers_conf conf;
    atomic_uint next_loop;
    atomic_bool writable, reserve;
    struct station stations[64];
};

struct session {
    struct station *station;
    struct conn *conn;  /* NULL: closed, and only kept for its requests */
    unsigned requests;  /* that hold it */
    struct slab *front; /* answers gathered; NULL: none */
    size_t front_used;
    struct list_node node, answered;
};

struct request {
    struct station *from, *at;
    struct session *session;
    struct bookie_request head;
    struct slice body; /* ADD: the entry */
    size_t body_len;
    int64_t lac;
    uint64_t began;
    int32_t status;
    struct slice answer; /* READ: the entry */
    struct ledger *ledger;
    uint8_t fence_record[FENCE_RECORD];
    struct journal_write write;
    struct read_job job;
    struct list_node waiting; /* in one list at a time: parked, for a fence, for the disk, idle */
    struct task task;
};

/* session.c */
void session_new(struct station *st, int fd); /* takes fd */
void session_close(struct session *s);        /* what it still waits for is not sent */
void session_answer(struct session *s, uint8_t version, uint8_t op, int32_t status, int64_t ledger,
                    int64_t entry, struct slice body); /* takes body */
void session_drop(struct session *s);                  /* a request lets go */
void station_flush(struct station *st);                /* sends what is gathered */

/* request.c */
struct request *request_new(struct session *s, const struct bookie_request *head);
void request_send(struct request *r);                 /* to its ledger's loop */
void request_answer(struct request *r);               /* on the session's loop: the end of r */
void request_finish(struct request *r, enum err err); /* on the ledger's loop, as the next */
void request_finish_with(struct request *r, struct slice entry); /* takes entry */
void station_end(struct station *st);

/* add.c, fence.c, lookup.c: on the ledger's loop */
void add_begin(struct request *r);
void add_parked(struct station *st); /* there may be room */
void add_drop_parked(struct station *st);
void fence_begin(struct request *r);
void lookup_begin(struct request *r); /* finds the ledger first */
void lookup_in(struct request *r);    /* r->ledger is known */

static inline struct storage_shard *request_shard(const struct request *r)
{
    return storage_shard(r->at->handlers->conf.storage, r->head.ledger);
}

#endif
