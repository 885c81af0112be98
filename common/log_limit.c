#include "common/log_limit.h"

/* Two threads that meet at the turn of a second may let a line more pass: nobody minds. */
bool log_limit_pass(struct log_limit *l, unsigned a_second, uint64_t now_us, uint64_t *left_out)
{
    const uint64_t second = now_us / 1000000 + 1;

    if (atomic_exchange(&l->second, second) != second)
        atomic_store(&l->told, 0);
    if (atomic_fetch_add(&l->told, 1) >= a_second) {
        atomic_fetch_add(&l->left_out, 1);
        return false;
    }
    *left_out = atomic_exchange(&l->left_out, 0);
    return true;
}
