/* fault.h - fail on the n-th call, k times: the seed of every fake in tests/. */
#ifndef TESTS_LIB_FAULT_H
#define TESTS_LIB_FAULT_H

#include <stdbool.h>

struct fault {
    unsigned after; /* calls that still succeed */
    unsigned times; /* calls that then fail; 0: none */
};

static inline bool fault_strikes(struct fault *f)
{
    if (f->after > 0) {
        f->after--;
        return false;
    }
    if (f->times == 0)
        return false;
    f->times--;
    return true;
}

#endif
