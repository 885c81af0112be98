/* verify_judge.h - the verdict of `lgm verify`, from what was logged and what was seen.
 *
 * Pure: tests feed it by hand.
 */
#ifndef CLI_VERIFY_JUDGE_H
#define CLI_VERIFY_JUDGE_H

#include "cli/verify_log.h"
#include "cli/verify_record.h"
#include "client/client.h"

struct verdict {
    uint64_t lost, duplicated, reordered, resent, redelivered, checked;
    uint64_t corrupt; /* of our run, and not as it was sent: counted as lost too */
};

struct judge;

struct judge *judge_new(void); /* gives */
void judge_drop(struct judge **j);
/* A record of the run was received; `crc` is that of its whole payload. */
void judge_saw(struct judge *j, const struct verify_record *r, uint32_t crc, struct message_id id);
void judge_saw_corrupt(struct judge *j);
bool judge_has_seen(const struct judge *j, uint64_t seq);
/* Every record that the log shows acknowledged was seen. */
bool judge_complete(const struct judge *j, const struct verify_evidence *e);
struct verdict judge_verdict(const struct judge *j, const struct verify_evidence *e);

#endif
