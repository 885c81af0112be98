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
#include "proto/bookie_v3.h"

/* What the handlers keep on each loop. */
struct station {
    struct handlers *handlers;
    struct loop *loop;
    struct list_node sessions;
    struct list_node answered; /* sessions whose answers wait to be sent */
    struct round_end round_end;
    struct list_node strangers; /* ledgers whose adds wait for the metadata: vouch.c */
    uint64_t vouch_bytes;
    struct list_node parked;         /* adds, in the order in which they came */
    unsigned parked_on[DEVICES_MAX]; /* of those, by the device that they wait for */
    uint64_t parked_bytes;
    struct timer parked_timer;
    bool parked_told; /* logged, once until nothing is parked */
    unsigned pending_reads;
    struct list_node polls; /* requests that wait for a higher LAC */
    unsigned polls_n;
    uint64_t batch_bytes;      /* that unfinished batches hold */
    struct list_node listings; /* requests whose ledger's entries are to be listed */
    unsigned listings_n;
    bool is_listing;
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
    bool is_secure;     /* it has asked for TLS */
    struct slab *front; /* answers gathered; NULL: none */
    size_t front_used;
    struct list_node node, answered;
};

/* What a request of version 3 has beside the others. */
struct v3_part {
    struct bookie_v3 head;
    bool has_lac;
    int64_t max_lac;
    uint8_t explicit_len;
    uint8_t explicit_lac[EXPLICIT_LAC_MAX];
    struct request *request;
    struct timer timer;       /* of a long poll */
    struct list_node polling; /* in its station */
    struct list_job list;
};

/* What a batch read has found: entries, or their answer in pieces of which the larger ones lie
 * where they were found. */
struct batch {
    struct slice *at;
    unsigned n, room;
    uint64_t bytes;
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
    struct device *device; /* ADD: the one it waits for; NULL: it is not known yet */
    struct slice answer;   /* READ: the entry */
    struct ledger *ledger;
    bool is_vouched;     /* ADD: the metadata was asked */
    struct v3_part *v3;  /* NULL: version 2 */
    struct batch *batch; /* BATCH_READ */
    uint8_t fence_record[FENCE_RECORD];
    struct journal_write write;
    struct read_job job;
    uint64_t thaws;           /* of the shard, when the job was given */
    struct list_node waiting; /* in one list at a time: parked, for a fence, for the disk, idle */
    struct task task;
};

/* session.c */
uint8_t *session_front_room(struct session *s, size_t n);     /* for an answer; NULL: closed */
void session_send_body(struct session *s, struct slice body); /* behind it; takes */
void session_secure(struct session *s);             /* what is answered from now on is encrypted */
bool session_has_too_much(const struct session *s); /* it does not read: no entries for it */
void session_turn_away(struct session *s, const char *event, const char *reason); /* closes */
void session_new(struct station *st, int fd);                                     /* takes fd */
void session_close(struct session *s); /* what it still waits for is not sent */
void session_answer(struct session *s, uint8_t version, uint8_t op, int32_t status, int64_t ledger,
                    int64_t entry, struct slice body); /* takes body */
void session_answer_batch(struct request *r);          /* takes its batch */
void session_drop(struct session *s);                  /* a request lets go */

/* v3.c */
void v3_frame(struct session *s, struct slice frame); /* borrows */
void v3_answer(struct request *r);
void v3_finishing(struct request *r); /* on the ledger's loop: what its state adds */

void station_flush(struct station *st); /* sends what is gathered */

/* request.c */
struct request *request_new(struct session *s, const struct bookie_request *head);
void request_send(struct request *r);                 /* to its ledger's loop */
void request_answer(struct request *r);               /* on the session's loop: the end of r */
void request_finish(struct request *r, enum err err); /* on the ledger's loop, as the next */
void request_finish_with(struct request *r, struct slice entry); /* takes entry */
void station_end(struct station *st);

/* vouch.c: adds of a ledger that this bookie may have fenced before it lost something.  The
 * metadata is asked once; l: NULL when it is not known here. */
bool vouch_is_needed(const struct request *r, const struct ledger *l);
void vouch_wait(struct request *r); /* add_begin() goes on with it */
void vouch_stop(struct station *st);

/* add.c, fence.c, lookup.c: on the ledger's loop */
void add_begin(struct request *r);
void add_parked(struct station *st); /* there may be room */
void add_drop_parked(struct station *st);
void fence_begin(struct request *r);
void lookup_begin(struct request *r); /* finds the ledger first */
void lookup_in(struct request *r);    /* r->ledger is known */
/* It is not in memory: lookup.c goes on with it when it has come. */
void lookup_on_disk(struct request *r);

/* batch.c: from batch_end() on the batch is of the answer's pieces; NULL: nothing was found */
void batch_go_on(struct request *r);                    /* from memory, as far as it goes */
void batch_take(struct request *r, struct slice entry); /* the one that was missing; takes */
void batch_end(struct request *r, enum err err);        /* no more come */
void batch_read_drop(struct request *r);

/* lac.c */
void poll_begin(struct request *r);
void polls_wake(struct ledger *l);   /* its LAC is higher, or it is fenced */
void polls_stop(struct station *st); /* all are answered now */
void lac_write_begin(struct request *r);
void force_begin(struct request *r);
void list_begin(struct request *r);

static inline struct storage_shard *request_shard(const struct request *r)
{
    return storage_shard(r->at->handlers->conf.storage, r->head.ledger);
}

#endif
