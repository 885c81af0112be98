/* What is told of a managed ledger to people. */
#include <string.h>

#include "broker/managed_ledger/managed_ledger_inside.h"

/* In Pulsar's words. */
const char *managed_ledger_state(const struct managed_ledger *m)
{
    if (m->failed || m->core.state == ML_FENCED)
        return "Fenced";
    if (m->terminated)
        return "Terminated";
    switch (m->core.state) {
    case ML_OPEN:
        return "LedgerOpened";
    case ML_CREATING:
    case ML_LISTING:
        return "CreatingLedger";
    case ML_DRAINING:
    case ML_CLOSING:
        return "ClosingLedger";
    case ML_WAITING:
        return "WriteFailed";
    case ML_CLOSED:
        return "Closed";
    default:
        return "ClosedLedger";
    }
}

/* Ours, and Pulsar's own. */
static bool is_private(const char *key)
{
    return strcmp(key, ML_RECORD_INDEX) == 0 || strncmp(key, "lgm.", 4) == 0 ||
           strncmp(key, "pulsar.", 7) == 0;
}

void managed_ledger_properties(const struct managed_ledger *m,
                               void (*each)(void *ctx, const char *key, const char *value),
                               void *ctx)
{
    for (size_t i = 0; i < m->record->n_properties; i++)
        if (!is_private(m->record->properties[i]->key))
            each(ctx, m->record->properties[i]->key, m->record->properties[i]->value);
}

int64_t managed_ledger_version(const struct managed_ledger *m)
{
    return m->node.version;
}
