/* asks.h - metadata and ownership, asked by a clerk who waits for the answer.
 *
 * What is written under policies and partitioned topics is forgotten by every loop's cache
 * before the answer: who is told "done" may rely on it at once.
 *
 * Threads: a clerk's.
 */
#ifndef BROKER_ADMIN_ASKS_H
#define BROKER_ADMIN_ASKS_H

#include "broker/admin/jobs.h"
#include "metadata/metadata.h"

/* ERR_NOT_FOUND.  value and version may be NULL; gives *value. */
MUST_CHECK enum err ask_get(struct job *j, const char *key, struct slice *value, int64_t *version);
/* Takes value; ERR_BAD_VERSION when it is not as expected. */
MUST_CHECK enum err ask_put(struct job *j, const char *key, struct slice value, int64_t expected);
MUST_CHECK enum err ask_remove(struct job *j, const char *key, int64_t expected);

struct ask_page {
    size_t n;
    char **keys;
    bool more;
};
MUST_CHECK enum err ask_range(struct job *j, const char *prefix, const char *after, size_t limit,
                              struct ask_page *out); /* gives */
void ask_page_drop(struct ask_page *p);
/* The names directly below the prefix, in order: array of strings; gives. */
MUST_CHECK enum err ask_children(struct job *j, const char *prefix, json_object **out);

/* An object; ERR_MALFORMED when it is none.  Gives. */
MUST_CHECK enum err ask_json(struct job *j, const char *key, json_object **out, int64_t *version);
MUST_CHECK enum err ask_put_json(struct job *j, const char *key, json_object *o,
                                 int64_t expected); /* borrows o */
/* Reads, lets change(), writes, again when somebody was faster.  What change() does not touch
 * comes back as it was.  An error of change() ends it. */
typedef enum err ask_change_fn(void *ctx, json_object *o);
MUST_CHECK enum err ask_rewrite(struct job *j, const char *key, ask_change_fn *change, void *ctx);

/* `web` gives, when it is another broker's: of HTTPS when the job came so; "": it has none. */
MUST_CHECK enum err ask_owner(struct job *j, const char *topic, bool *mine, char **web);

json_object *ask_self(const struct job *j); /* what this broker is called; gives */

#endif
