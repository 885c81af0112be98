/* house.h - one loop, a shaky metadata store, some fake bookies and a ledger client, for tests that
 * wait for what they ask.
 *
 * Threads: the test's own calls these; the loop has another.
 */
#ifndef TESTS_UNIT_LEDGER_HOUSE_H
#define TESTS_UNIT_LEDGER_HOUSE_H

#include <pthread.h>

#include "ledger/client.h"
#include "metadata/metadata.h"
#include "tests/lib/fake_bookie.h"
#include "tests/lib/shaky_meta.h"

enum { BOOKIES_MAX = 5, APPENDS_MAX = 300 };

/* One loop, one metadata store, some bookies, a client; the test's own thread waits. */
struct house {
    struct loop *loop;
    struct metadata *meta; /* the shaky one */
    struct shaky_meta *shaky;
    struct fake_bookie *bookie[BOOKIES_MAX];
    unsigned n, hidden; /* bookies; of these, the last ones that say nothing at first */
    unsigned expected;  /* that the client counts, when it opens; 0: all that say something */
    struct ledger_counts counts;
    struct ledger_client_conf conf;
    const char *groups, *second_groups; /* that new ledgers are kept in; NULL: any */
    struct ledger_client *client;
    struct bookies_watch watch;
    pthread_mutex_t lock;
    pthread_cond_t turned;
    unsigned happened; /* callbacks so far */
    unsigned seen;
};

struct batch {
    struct ledger *ledger;
    unsigned n, accepted;
    enum err refused;
    struct ledger_append append[APPENDS_MAX];
    enum err err[APPENDS_MAX];
    entry_id id[APPENDS_MAX];
    unsigned order[APPENDS_MAX], done;
};

struct reading {
    struct ledger_read read;
    struct ledger *ledger;
    unsigned got;
    entry_id cancel_at; /* by its own callback */
    enum err err;
    bool done;
};

extern struct house house;
extern struct batch house_batch; /* the appends of the last house_append() */

void house_happened(void);
void house_await(unsigned n);
void house_call(void (*fn)(void *ctx), void *ctx);
void house_open(unsigned bookies);
void house_close(void);
struct ledger *house_create_above(struct quorum q, int64_t above, enum err *err);
struct ledger *house_create(unsigned e, unsigned w, unsigned a);
enum err house_open_ledger(int64_t id, enum ledger_open_how how, struct ledger **out);
enum err house_close_ledger(struct ledger **l);
enum err house_delete_ledger(int64_t id);
void house_drop(struct ledger **l);
void house_append(struct ledger *l, unsigned n);
void house_appended(struct ledger *l, unsigned n);
void house_read_begin(void *ctx);
enum err house_read_range(struct ledger *l, entry_id first, entry_id last, unsigned *got);
void house_reads_all(struct ledger *l, unsigned n);
/* What the client has counted: a member of ledger_counts. */
#define house_counts(member) ((uint64_t)metric_get(&house.counts.member))
void house_register(unsigned bookie); /* it says that it is there */
void house_knob(void (*turn)(struct fake_bookie_knobs *k), unsigned bookie);

#endif
