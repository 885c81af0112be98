/* auditor.h - when to look through all ledgers, and for whose copies.  Pure.
 *
 *   known -- not registered for `delay` --> lost ----+--> audit: mark each ledger that names one
 *         -- told to leave --------------> leaving --+
 *
 * A bookie that is lost alone is waited for; with a second one there is no time to lose.  What an
 * audit was done for is done until the bookie comes back, or until the audit of the period - unless
 * it met ledgers in recovery: their recoverers may have given the bookie entries and name it later.
 * Then there is another one, and the time between them doubles.
 *
 * A bookie is a number: the owner's.
 */
#ifndef LEDGER_AUDITOR_H
#define LEDGER_AUDITOR_H

#include <stdbool.h>
#include <stdint.h>

#define AUDITOR_NEVER UINT64_MAX

struct auditor_bookie {
    bool known, here, leaving;
    bool audited;    /* as it is now */
    bool auditing;   /* the audit under way is for it */
    bool found;      /* a ledger that names it, by that audit */
    unsigned rounds; /* audits that did not settle it */
    uint64_t lost_at;
    uint64_t look_at; /* for ledgers of one that is leaving, or once more */
};

struct auditor {
    uint64_t delay_us, period_us, retry_us, grace_us;
    bool paused;
    uint32_t n;
    struct auditor_bookie *at; /* owned */
    bool running;
    bool asked;     /* by an operator: the next is for all that are away, however short */
    bool unsettled; /* the audit under way has met a ledger in recovery */
    uint64_t next_period, not_before;
};

/* The first audit is due at once: an auditor does not know what its predecessor saw.  One that it
 * has never seen here has `grace` to appear: all may be starting. */
void auditor_init(struct auditor *a, uint64_t delay_us, uint64_t period_us, uint64_t retry_us,
                  uint64_t grace_us, uint64_t now);
void auditor_drop(struct auditor *a);
/* How a bookie is now; one that was never told of is unknown, and no concern. */
void auditor_saw(struct auditor *a, uint32_t bookie, bool here, bool leaving, uint64_t now);
void auditor_pause(struct auditor *a, bool paused);
void auditor_ask(struct auditor *a); /* one is due at once, and once more when one runs */
/* When an audit is due, at the latest; NEVER while one runs or all is paused. */
uint64_t auditor_due(const struct auditor *a, uint64_t now);
void auditor_began(struct auditor *a, uint64_t now);
/* Of a bookie that a ledger names: is it one that the audit under way is for?  One that is leaving
 * is audited again until no ledger names it: it took new ones until its last moment. */
bool auditor_is_after(struct auditor *a, uint32_t bookie);
/* After an audit that marked all: no ledger names it, and none is in recovery. */
bool auditor_is_empty(const struct auditor *a, uint32_t bookie);
void auditor_again(struct auditor *a, uint32_t bookie,
                   uint64_t now);            /* it is to be audited again */
void auditor_in_recovery(struct auditor *a); /* it has met a ledger that is */
void auditor_ended(struct auditor *a, bool all_marked, uint64_t now);

#endif
