/* talk.h - a client of one bookie over a blocking socket: many questions, then their answers.
 *
 * Answers come in any order; each says which question it is of.  Version 2 of the protocol, and
 * version 3 where version 2 has no words.
 *
 * Limits: at most TALK_MAX questions without an answer.
 */
#ifndef TESTS_CRASHPOINTS_TALK_H
#define TESTS_CRASHPOINTS_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TALK_MAX = 256 };

enum talk_kind { TALK_ADD = 1, TALK_READ, TALK_WRITE_LAC, TALK_READ_LAC, TALK_FORCE };
enum { TALK_FENCING = 1, TALK_RECOVERY = 2, TALK_DEFERRED = 256 }; /* flags of adds and reads */

struct talk;

struct talk_answer {
    enum talk_kind kind;
    uint64_t tag;   /* as given with a question of version 3; 0 for the others */
    int32_t status; /* enum bookie_status, whatever the version */
    int64_t ledger, entry;
    const uint8_t *body; /* until the next answer: the entry; the explicit LAC */
    size_t len;
};

struct talk *talk_open(uint16_t port, unsigned patience_s); /* gives; NULL: nobody answers */
void talk_close(struct talk **t);
/* entry: its bytes.  other_key: a wrong one. */
void talk_add(struct talk *t, unsigned flags, uint64_t tag, int64_t ledger, int64_t entry,
              const uint8_t *bytes, size_t len, bool other_key);
void talk_read(struct talk *t, unsigned flags, int64_t ledger, int64_t entry);
void talk_write_lac(struct talk *t, uint64_t tag, int64_t ledger, int64_t lac);
void talk_read_lac(struct talk *t, uint64_t tag, int64_t ledger);
void talk_force(struct talk *t, uint64_t tag, int64_t ledger);
/* False: the connection has ended, or nothing comes. */
bool talk_next(struct talk *t, struct talk_answer *out);

#endif
