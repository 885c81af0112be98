#include "broker/managed_ledger/trimmer.h"

#include "broker/managed_ledger/managed_ledger.h"

/* Ledgers of which every entry is acknowledged, the last one left out. */
static unsigned acknowledged(const struct segments *s, struct position acked)
{
    unsigned n = 0;

    while (n + 1 < s->n && !s->at[n].open &&
           position_compare((struct position){s->at[n].ledger, s->at[n].entries - 1}, acked) <= 0)
        n++;
    return n;
}

static bool too_old(const struct ml_conf *conf, const struct segment *s, int64_t now_ms)
{
    if (conf->retention_ms < 0)
        return false;
    return conf->retention_ms == 0 || now_ms - s->closed_ms > conf->retention_ms;
}

/* `left`: what would be kept after it. */
static bool too_much(const struct ml_conf *conf, int64_t left)
{
    return conf->retention_bytes >= 0 && left >= conf->retention_bytes;
}

unsigned trimmer_count(const struct segments *s, struct position acked, const struct ml_conf *conf,
                       int64_t now_ms)
{
    unsigned candidates = acknowledged(s, acked), n;
    int64_t left = 0;

    for (unsigned i = 0; i < s->n; i++)
        left += s->at[i].bytes;
    for (n = 0; n < candidates; n++) {
        left -= s->at[n].bytes;
        if (!too_old(conf, &s->at[n], now_ms) && !too_much(conf, left))
            break;
    }
    return n;
}
