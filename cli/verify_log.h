/* verify_log.h - what the publishing side of `lgm verify` saw, durably: the judge's evidence.
 *
 *   lgm-verify-log 1 run=<run> count=<N> topic=<topic>
 *   A <seq> <ledger>:<entry>:<batch index>     acknowledged, there
 *   R <seq>                                    sent again after a lost connection
 *   E <acked> <seq>                            the end: so many were acknowledged; the end mark's
 * number
 *
 * Written with one write() before anything depends on it, synced at least every 100 ms and at the
 * end.  A last line that is torn is left out when read.
 */
#ifndef CLI_VERIFY_LOG_H
#define CLI_VERIFY_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/verify_record.h"
#include "client/client.h"
#include "common/err.h"

struct verify_log;

/* ERR_EXISTS: a log is evidence and is never written over. */
MUST_CHECK enum err verify_log_create(struct verify_log **out, const char *path, const char *run,
                                      uint64_t count, const char *topic);
void verify_log_acked(struct verify_log *l, uint64_t seq, struct message_id id);
void verify_log_resent(struct verify_log *l, uint64_t seq);
MUST_CHECK enum err verify_log_flush(struct verify_log *l, bool sync);
/* Syncs and closes. */
MUST_CHECK enum err verify_log_end(struct verify_log **l, uint64_t acked, uint64_t end);

struct verify_seen {
    bool acked, resent;
};

/* What a log says; grows by verify_log_read_more() while the other side still writes it. */
struct verify_evidence {
    char run[VERIFY_RUN_CHARS + 1];
    uint64_t count; /* records; the end mark has this number */
    char *topic;
    struct verify_seen *at; /* by seq, `room` of them */
    uint64_t room, acked;
    bool ended;
    FILE *file;
    long offset;
};
MUST_CHECK enum err verify_evidence_open(struct verify_evidence *e, const char *path);
void verify_evidence_more(struct verify_evidence *e);
void verify_evidence_drop(struct verify_evidence *e);

#endif
