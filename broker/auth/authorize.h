/* authorize.h - may this principal do that?  Asked for every command and every HTTP route.
 *
 * Threads: may() from any loop, and it answers at once.
 */
#ifndef BROKER_AUTH_AUTHORIZE_H
#define BROKER_AUTH_AUTHORIZE_H

#include "common/err.h"

enum action {
    ACTION_LOOKUP, /* where is it, has it partitions, its schema */
    ACTION_PRODUCE,
    ACTION_CONSUME,
    ACTION_LIST,    /* the topics of a namespace */
    ACTION_ADMIN,   /* tenants, namespaces and their policies; topics as such */
    ACTION_MONITOR, /* health, versions, metrics */
    ACTION_MOVE,    /* unload a topic or a bundle */
};

struct principal {
    const char *role; /* NULL: nobody said who it is */
};

struct authorizer {
    /* `resource`: a full topic name, "tenant/namespace", or "" for the broker itself.
     * ERR_FORBIDDEN. */
    enum err (*may)(const struct authorizer *a, const struct principal *who, enum action what,
                    const char *resource);
};

static inline MUST_CHECK enum err authorize(const struct authorizer *a, const struct principal *who,
                                            enum action what, const char *resource)
{
    return a->may(a, who, what, resource);
}

const struct authorizer *authorizer_allow_all(void);

#endif
