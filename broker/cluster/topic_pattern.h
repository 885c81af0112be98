/* topic_pattern.h - which topics a client's pattern means, and never more work than is bounded.
 *
 * Clients have a regular expression of RE2's kind for whole names without their domain, with or
 * without a domain before it ("persistent://t/ns/a.*", "^persistent://t/ns/a.*$"), and mean all
 * partitions of what matches.  It is tried with PCRE2's matching without backtracking: that takes
 * each byte of a name once, with as many states as fit a small workspace.
 *
 * Threads: one at a time.
 * Limits:  a name whose states do not fit, or a pattern that needs backtracking: ERR_TOO_BIG.
 */
#ifndef BROKER_CLUSTER_TOPIC_PATTERN_H
#define BROKER_CLUSTER_TOPIC_PATTERN_H

#include <stdbool.h>

#include "common/err.h"

struct topic_pattern;

/* ERR_INVALID_NAME: not a regular expression, or of an unknown domain.  Gives. */
MUST_CHECK enum err topic_pattern_new(struct topic_pattern **out, const char *text);
void topic_pattern_drop(struct topic_pattern **p);
const char *topic_pattern_text(const struct topic_pattern *p); /* as it came */

/* `full`: a topic's name with its domain. */
MUST_CHECK enum err topic_pattern_matches(struct topic_pattern *p, const char *full, bool *out);

#endif
