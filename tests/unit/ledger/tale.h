/* tale.h - what a core asks for, written down as text: a test is a story. */
#ifndef TESTS_UNIT_LEDGER_TALE_H
#define TESTS_UNIT_LEDGER_TALE_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/suite.h"

struct tale {
    size_t n;
    char text[16384];
};

__attribute__((format(printf, 2, 3))) static inline void tell(struct tale *t, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(t->text + t->n, sizeof t->text - t->n, fmt, ap);
    va_end(ap);
    if (n > 0 && (size_t)n < sizeof t->text - t->n)
        t->n += (size_t)n;
}

/* The story since the last time; the next one begins. */
#define tells(t, story)                     \
    do {                                    \
        ck_assert_str_eq((t)->text, story); \
        (t)->n = 0;                         \
        (t)->text[0] = '\0';                \
    } while (0)

#endif
