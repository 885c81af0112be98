#include "broker/managed_ledger/roller.h"

#include "broker/managed_ledger/managed_ledger.h"
#include "common/rng.h"

/* 0 to 5 % in steps of 1/1024, the same for one ledger at every look. */
static int64_t greatest_age_ms(const struct ml_conf *conf, int64_t ledger)
{
    uint64_t seed = (uint64_t)ledger;
    int64_t step = (int64_t)rng_below(&seed, 52);

    return conf->max_rollover_ms + conf->max_rollover_ms / 1024 * step;
}

bool roller_due(const struct ml_conf *conf, const struct roller_ledger *l)
{
    bool full =
        l->entries >= conf->max_entries_per_ledger || l->bytes >= conf->max_bytes_per_ledger;

    if (l->entries == 0)
        return false;
    if (full && l->age_ms >= conf->min_rollover_ms)
        return true;
    return conf->max_rollover_ms > 0 && l->age_ms >= greatest_age_ms(conf, l->id);
}
