/* captured.h - what the code under test writes to standard error, as a string.
 *
 *   capture_start(&c); ... ; const char *text = capture_end(&c);   (valid until the next start)
 */
#ifndef TESTS_UNIT_COMMON_CAPTURED_H
#define TESTS_UNIT_COMMON_CAPTURED_H

#include <stdio.h>
#include <unistd.h>

#include "tests/lib/suite.h"

struct captured {
    FILE *file;
    int before;
    char text[256 << 10];
};

static inline void capture_start(struct captured *c)
{
    c->file = tmpfile();
    ck_assert_ptr_nonnull(c->file);
    c->before = dup(STDERR_FILENO);
    dup2(fileno(c->file), STDERR_FILENO);
}

static inline const char *capture_end(struct captured *c)
{
    dup2(c->before, STDERR_FILENO);
    close(c->before);
    const ssize_t n = pread(fileno(c->file), c->text, sizeof c->text - 1, 0);
    ck_assert_int_ge(n, 0);
    c->text[n] = '\0';
    fclose(c->file);
    return c->text;
}

#endif
