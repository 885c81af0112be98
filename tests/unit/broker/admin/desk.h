/* desk.h - asks a broker's HTTP what it is told to, and waits for the answer. */
#ifndef TESTS_UNIT_BROKER_ADMIN_DESK_H
#define TESTS_UNIT_BROKER_ADMIN_DESK_H

#include "tests/unit/broker/session/inn.h"

/* The status; *body (NULL: not wanted) gives what came, headers and all. */
int desk_ask(const struct inn *i, const char *method, const char *path, const char *json,
             char **body);

#endif
