#include "ledger/quorum.h"

bool quorum_valid(struct quorum q)
{
    return q.ack >= 1 && q.write >= q.ack && q.ensemble >= q.write && q.ensemble <= ENSEMBLE_MAX;
}

unsigned quorum_slot(struct quorum q, entry_id e, unsigned k)
{
    return (unsigned)(((uint64_t)e + k) % q.ensemble);
}

uint32_t quorum_write_set(struct quorum q, entry_id e)
{
    uint32_t set = 0;

    for (unsigned k = 0; k < q.write; k++)
        set |= 1u << quorum_slot(q, e, k);
    return set;
}

unsigned quorum_negatives(struct quorum q)
{
    return q.write - q.ack + 1;
}

bool quorum_fenced(struct quorum q, uint32_t fenced_slots)
{
    for (entry_id start = 0; start < (entry_id)q.ensemble; start++) {
        uint32_t free_ones = quorum_write_set(q, start) & ~fenced_slots;
        if ((unsigned)__builtin_popcount(free_ones) >= q.ack)
            return false;
    }
    return true;
}
