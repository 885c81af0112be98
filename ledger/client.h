/* client.h - ledgers: written once, read by many, closed for good.
 *
 * The shell around appender, reader and recoverer: it owns the links to the bookies and the
 * timers, feeds the cores what happens and does what they ask.
 *
 *   ledger_append -> appender -> link a bookie: header + digest, one writev -> Qa replies, in
 *   order -> append->done()
 *
 * A bookie that fails under a ledger is replaced while it is written: appender.h.
 *
 * Memory:  requests are embedded in their owner and stay put until done().
 * Threads: a client and its handles live on one loop; done() never comes in the caller's stack.
 * Limits:  conf.window_entries and conf.window_bytes in flight a ledger, then ERR_BUSY: go on
 *          after the next done().
 */
#ifndef LEDGER_CLIENT_H
#define LEDGER_CLIENT_H

#include "common/buf.h"
#include "common/err.h"
#include "common/list.h"
#include "common/loop.h"
#include "common/metric.h"
#include "ledger/quorum.h"

struct ledger;
struct ledger_client;
struct metadata;
struct tls;

/* Which bookies ledgers get: placement.h. */
struct placement_conf {
    bool distinct_hosts; /* by the address in the bookie's id; else as far as there are so many */
    bool racks, regions; /* as /bookies says */
    unsigned racks_min;  /* in a write set */
    bool enforce_racks;
    const char *groups, *second_groups; /* comma between them; empty or NULL: any */
    bool by_free_space;     /* bookies are asked for it; else by what is written there now */
    unsigned free_multiple; /* of the median; more counts as that; 0: no limit */
    uint64_t space_look_us, space_retry_us; /* so often; after a failure */
    uint64_t suspect_max_us; /* longest time that a failing bookie is avoided; 0: 30 min */
};

/* Counted by all clients that are given it. */
struct ledger_counts {
    struct metric changes; /* bookies replaced while a ledger was written */
    struct metric lacking; /* ledgers that do without a failed bookie now, for want of another */
    struct metric second_reads; /* asked besides a slow bookie */
    struct metric corrupt;      /* entries that came with a wrong digest */
};

/* Custom metadata of a ledger: application=pulsar and the like.  PLACEMENT_TAG (records.h) says
 * which groups of bookies it is kept in, now and when one of them is replaced. */
struct ledger_tag {
    const char *key;
    struct view value;
};

/* Knows for each new ledger what PLACEMENT_TAG is to say.  `tags` are borrowed until told(), which
 * never comes in ask()'s stack; an empty rule: nothing. */
struct ledger_place {
    void (*told)(struct ledger_place *p, enum err err, struct view rule);
};
struct ledger_placer {
    void (*ask)(struct ledger_placer *p, const struct ledger_tag *tags, unsigned n,
                struct ledger_place *place);
};

struct ledger_client_conf {
    uint64_t add_timeout_us;  /* a bookie that has not answered by then has failed; 0: 30 s */
    uint64_t read_timeout_us; /* then the next replica is asked; 0: 30 s */
    uint64_t second_read_us;  /* then one is asked besides; 0: never */
    bool one_read_each;       /* entries are asked for one by one, not many at once */
    unsigned window_entries;  /* 0: 50,000 */
    size_t window_bytes;      /* 0: 64 MiB */
    size_t link_bytes;        /* adds that one bookie has not answered, then it fails; 0: 128 MiB */
    uint64_t slow_us;         /* an append that takes longer names who is late; 0: never */
    bool delay_changes;       /* replace a failed bookie only when the ack quorum needs it */
    struct placement_conf place;
    struct ledger_placer *placer; /* borrowed for the client's life; NULL: nobody */
    struct ledger_counts *counts; /* borrowed for the client's life; NULL: its own */
    struct tls *tls;              /* to the bookies; NULL: plain */
};

struct ledger_client *ledger_client_new(struct loop *home, struct metadata *meta,
                                        const struct ledger_client_conf *conf); /* gives */
void ledger_client_drop(struct ledger_client **c); /* after all its handles */

/* Bookies that can take writes now, as this client knows them; false until the first listing. */
bool ledger_client_ready(const struct ledger_client *c);
unsigned ledger_client_bookies(const struct ledger_client *c);
/* changed() whenever the set of writable bookies has changed. */
struct bookies_watch {
    void (*changed)(struct bookies_watch *w);
    struct list_node node; /* private */
};
void ledger_client_watch(struct ledger_client *c, struct bookies_watch *w);
void ledger_client_unwatch(struct ledger_client *c, struct bookies_watch *w);

struct ledger_call {
    /* `l` is given on ERR_OK of create and open, else NULL. */
    void (*done)(struct ledger_call *c, enum err err, struct ledger *l);
    void *private;
};

/* A new ledger of ours: CRC32C, empty password.  ERR_NOT_ENOUGH_BOOKIES at once when fewer than
 * E are alive.  Its id is above `above` (the last ledger of the same topic; -1: any): clients
 * compare positions by ledger id, and ids come to each client in blocks, so a block that lies
 * below is given up for a new one from the counter. */
void ledger_create(struct ledger_client *c, struct quorum q, int64_t above,
                   const struct ledger_tag *tags, unsigned n, struct ledger_call *call);

enum ledger_open_how {
    LEDGER_OPEN_READ,    /* as it is: an open ledger shows what its bookies know as confirmed */
    LEDGER_OPEN_RECOVER, /* fence the old writer, find the true end, close there, then read */
};
/* ERR_NO_LEDGER only when the metadata says so.  Any digest and password (from the metadata). */
void ledger_open(struct ledger_client *c, int64_t id, enum ledger_open_how how,
                 struct ledger_call *call);

struct ledger_append {
    struct chain payload; /* borrowed until done(); kept by the caller for a resend */
    uint32_t crc;         /* CRC32C of the payload */
    /* ERR_OK in entry order.  After a failure the ledger takes no more: every append that is not
     * confirmed fails, in order, FENCED when another owner has taken the ledger, else anything
     * of class RETRY: close it and go on in a new one. */
    void (*done)(struct ledger_append *a, enum err err, entry_id id);
    /* When it went to the bookies last, and when Qa of them had it (0: they have not).  `last`
     * made them Qa; `silent` had not answered by then (NULL: nobody, or it was not slow).  Both
     * stay valid as long as the client does. */
    uint64_t sent_us, safe_us;
    const char *last, *silent;
    struct list_node node; /* private, as the next */
    entry_id id;
};
MUST_CHECK enum err ledger_append(struct ledger *l, struct ledger_append *a);

enum { LEDGER_URGENT_US = 200 * 1000 };

struct ledger_read {
    entry_id first, last; /* inclusive; at most the last confirmed */
    size_t max_bytes;     /* stops after the entry that reaches it; 0: no limit */
    bool is_urgent;       /* another bookie is asked after LEDGER_URGENT_US, if not before */
    void (*entry)(struct ledger_read *r, entry_id id, struct slice payload); /* in order; gives */
    void (*done)(struct ledger_read *r, enum err err); /* ERR_OK; NO_ENTRY, CHECKSUM, IO ...: all
                                                          before it was delivered */
    void *private;
};
/* May be dropped by ledger_read_cancel(): then no further callback. */
void ledger_read(struct ledger *l, struct ledger_read *r);
void ledger_read_cancel(struct ledger_read *r);

int64_t ledger_id(const struct ledger *l);
entry_id ledger_last_confirmed(const struct ledger *l); /* ENTRY_NONE: empty */
int64_t ledger_length(const struct ledger *l);          /* payload bytes up to that entry */
bool ledger_is_closed(const struct ledger *l);          /* sealed in the metadata */
struct quorum ledger_quorum(const struct ledger *l);

/* Seals a ledger of ours at its last confirmed entry; *l becomes NULL, l stays valid until done().
 * ERR_FENCED when another owner recovers or closed it otherwise. */
void ledger_close(struct ledger **l, struct ledger_call *call);
void ledger_drop(struct ledger **l); /* lets the handle go; what is under way is cancelled */
/* Its metadata goes; the bookies find out by themselves.  An absent one is ERR_OK. */
void ledger_delete(struct ledger_client *c, int64_t id, struct ledger_call *call);

/* ---- for the day when the metadata store is put back to an older state ----------------------- */

/* A ledger's metadata as this handle wrote or read it last: `value` is given. */
struct ledger_known {
    int64_t ledger, version;
    struct slice value;
};
struct ledger_known ledger_known(const struct ledger *l);

/* The same of a ledger that no handle is at hand for, as the store says it. */
struct ledger_recall {
    void (*done)(struct ledger_recall *r, enum err err, const struct ledger_known *k); /* borrows */
    void *private;
};
void ledger_recall(struct ledger_client *c, int64_t ledger, struct ledger_recall *r);

/* Says it to the store again where that is behind: what it says of that very ledger is older, or
 * (only if `forgotten`, the store has surely gone back since) it does not know it.  What others
 * wrote meanwhile stays, and is ERR_OK too.  By the owner of what lists the ledger. */
struct ledger_return {
    void (*done)(struct ledger_return *r, enum err err, bool written);
    void *private;
};
void ledger_write_back(struct ledger_client *c, const struct ledger_known *k, bool forgotten,
                       struct ledger_return *r); /* copies k, shares its value */

#endif
