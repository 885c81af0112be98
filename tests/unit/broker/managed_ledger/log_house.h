/* log_house.h - a house for managed ledgers: one loop, a store, fake bookies, and brokers'
 * parts.
 *
 * The test's own thread asks and waits; what happens, happens on the loop.
 */
#ifndef TESTS_UNIT_BROKER_MANAGED_LEDGER_LOG_HOUSE_H
#define TESTS_UNIT_BROKER_MANAGED_LEDGER_LOG_HOUSE_H

#include "broker/managed_ledger/cursor.h"
#include "broker/managed_ledger/managed_ledger.h"
#include "metadata/metadata.h"
#include "metadata/records.h"
#include "tests/lib/fake_bookie.h"

#define HOUSE_TOPIC "public/default/persistent/t"

enum { BOOKIES_MAX = 3, ADDS_MAX = 400, OWNERS = 2 };

/* A broker's part: a client, an environment, one managed ledger. */
struct owner {
    struct ml_owner tell;
    struct ledger_client *client;
    struct ml_env *env;
    struct managed_ledger *ml;
    unsigned grew;
    enum err failed;
};

struct one_add {
    struct ml_add add;
    char text[40];
    bool done;
    enum err err, refused;
    struct position at;
    uint64_t index;
};

struct log_house {
    struct loop *loop;
    struct metadata *meta;
    struct fake_bookie *bookie[BOOKIES_MAX];
    unsigned n;
    struct owner owner[OWNERS];
    struct ml_conf conf;
    struct one_add add[ADDS_MAX];
    unsigned added, done, confirmed;
};

struct order {
    struct ml_call call;
    struct owner *owner;
    bool create, delete, done;
    enum err err;
};

struct reading {
    struct ml_read read;
    struct managed_ledger *ml;
    bool done;
    enum err err;
    unsigned n;
    struct position at[ADDS_MAX], next;
    uint64_t index[ADDS_MAX];
    char text[ADDS_MAX][40];
};

extern struct log_house log_house;
extern const struct ml_conf log_house_usual;
/* Set before log_house_open(): puts a store of the test's own before the memory store. */
extern struct metadata *(*log_house_wrap_store)(struct metadata *inner);
extern struct reading log_house_got; /* by log_house_read() */

void log_house_call(void (*fn)(void *ctx), void *ctx); /* on the loop */
void log_house_until(bool (*is_so)(void *ctx), void *ctx);

void log_house_open(unsigned bookies); /* that are registered at first */
void log_house_open_with(unsigned bookies, const struct ml_conf *conf);
void log_house_join(unsigned bookie); /* registers one more */
void log_house_close(void);

enum err log_house_own(unsigned who, bool create);
enum err log_house_end(unsigned who, bool delete);
void log_house_order_done(struct ml_call *c, enum err err, struct managed_ledger *m);
bool log_house_is_done(void *ctx); /* a struct order */

void log_house_start(unsigned who, unsigned n); /* adds n, and does not wait */
void log_house_add(unsigned who, unsigned n);
bool log_house_answered(void *ctx); /* every add */

void log_house_read_begin(void *ctx); /* a struct reading */
void log_house_read(unsigned who, struct position from, unsigned max_entries, size_t max_bytes,
                    const struct cursor *skip);
/* Everything that was confirmed is there, once, in order, with dense indexes; in steps. */
void log_house_check(unsigned who, unsigned step);

/* Creates, or deletes. */
enum err log_house_cursor(unsigned who, const char *name, struct position at, bool delete,
                          struct cursor **out);
typedef void log_house_ack_how(struct cursor *c, struct position at, struct cursor_ack_call *call);
void log_house_ack(struct cursor *c, unsigned add, log_house_ack_how *how); /* durably */

ManagedLedger__ManagedLedgerInfo *log_house_node(int64_t *version); /* gives; NULL: none */
void log_house_node_free(ManagedLedger__ManagedLedgerInfo *r);
size_t log_house_node_ledgers(void);
bool log_house_has_ledger(int64_t id);

#endif
