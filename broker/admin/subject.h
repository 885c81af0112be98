/* subject.h - the topic that a job is about.
 *
 * Threads: a clerk's.
 */
#ifndef BROKER_ADMIN_SUBJECT_H
#define BROKER_ADMIN_SUBJECT_H

#include "broker/admin/jobs.h"
#include "metadata/paths.h"

struct subject {
    struct topic_name name;
    int32_t partitions; /* of the base name; 0: not partitioned */
    bool deleted;       /* its partitions are going, or could not all be deleted */
};

/* Segments 1 to 3 of the path; its namespace is there.  false: answered.  Gives. */
bool subject_of(struct job *j, struct subject *s);
void subject_drop(struct subject *s);
/* Does the name mean all partitions? */
static inline bool subject_is_whole(const struct subject *s)
{
    return s->partitions > 0 && s->name.partition < 0;
}
/* false: another broker's, or nobody's; answered (307, 503). */
bool subject_is_mine(struct job *j, const struct subject *s);
/* Is there a stored topic of that name?  ERR_TOPIC_NOT_FOUND. */
MUST_CHECK enum err subject_exists(struct job *j, const struct subject *s);

/* true: it is a partitioned topic, and the same was done to every partition; answered with
 * the first that failed, or 204. */
bool subject_all_partitions(struct job *j, const struct subject *s);
/* true: it is a partitioned topic, for which this cannot be: answered with 405. */
bool subject_refuses_whole(struct job *j, const struct subject *s);

/* Namespaces: false when it is not there, answered with 404 (412: no name). */
bool subject_namespace(struct job *j, const char *tenant, const char *ns);

#endif
