/* admin_verbs.h - what `lgm admin` shares: the table of verbs, a call with what was said, HTTP.
 *
 *   words -> call (verb, arguments, options) -> target, body -> broker -> table or JSON
 *
 * Memory:  a call borrows the command line; what is made of it is given.
 */
#ifndef CLI_ADMIN_VERBS_H
#define CLI_ADMIN_VERBS_H

#include <json-c/json.h>
#include <stdbool.h>

#include "common/metric.h"

enum { ADMIN_ARGUMENTS = 4, ADMIN_OPTIONS = 64 };

struct admin_verb {
    const char *group, *name, *arguments, *options, *method, *path, *body, *help;
};
extern const struct admin_verb admin_verbs[];
extern const unsigned admin_n_verbs;

struct admin_call {
    const struct admin_verb *verb;
    const char *argument[ADMIN_ARGUMENTS];
    struct {
        const char *name, *value; /* NULL: without */
        int name_len;
    } option[ADMIN_OPTIONS];
    unsigned n_options;
    const char *url;
    const char *trust, *cert, *key; /* files, for https; NULL: none */
    bool insecure, json;
};

const char *admin_option(const struct admin_call *c, const char *name, size_t len); /* or NULL */

/* Path and query; NULL: a name is wrong, and was complained of.  Gives. */
char *admin_target(const struct admin_call *c);
/* NULL and *fine: there is none.  Gives. */
char *admin_body(const struct admin_call *c, bool *fine);

/* The status, or 0: nobody answers, and it was complained of. */
long admin_http(const struct admin_call *c, const char *target, const char *body,
                struct text *answer);
/* GET of bytes, and of what is said of them: header fields, by their names in small letters. */
struct admin_bytes {
    uint8_t *base;
    size_t len, room;
    json_object *headers;
};
long admin_http_bytes(const struct admin_call *c, const char *target, struct admin_bytes *out);
void admin_bytes_drop(struct admin_bytes *b);
/* One message after the other: gives the exit code. */
int admin_peek(const struct admin_call *c);
void admin_complain(const struct admin_call *c, long status, const char *answer);

void admin_print(const struct admin_call *c, const char *answer);

/* "lgm admin: sentence" on standard error. */
void admin_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
