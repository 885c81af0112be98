#include "broker/managed_ledger/lineage.h"

#include <stdio.h>
#include <string.h>

/* ---- the text ------------------------------------------------------------------------------- */

static const char *next_of(const char *at)
{
    const char *comma = strchr(at, ',');

    return comma ? comma + 1 : NULL;
}

/* Its place, counted from the newest; -1: it is not among them. */
static int place_of(const char *owners, const char *token)
{
    size_t len = strcspn(token, ",");
    int n = 0;

    for (const char *at = owners; at; at = next_of(at), n++)
        if (strcspn(at, ",") == len && strncmp(at, token, len) == 0)
            return n;
    return -1;
}

void lineage_add(const char *before, const char *token, char out[LINEAGE_TEXT])
{
    size_t used = (size_t)snprintf(out, LINEAGE_TEXT, "%.*s", LINEAGE_TOKEN_MAX, token);
    const char *at = before && *before ? before : NULL;

    for (unsigned n = 1; at && n < LINEAGE_MAX; at = next_of(at), n++) {
        int len = (int)strcspn(at, ",");
        if (len > LINEAGE_TOKEN_MAX)
            return;
        used += (size_t)snprintf(out + used, LINEAGE_TEXT - used, ",%.*s", len, at);
    }
}

/* ---- the row -------------------------------------------------------------------------------- */

/* What another wrote must be in mine as it is; of what I wrote earlier I may have dropped some. */
static bool knows(const struct lineage_node *mine, const struct segment *s, bool my_own)
{
    const struct segment *known = segments_find(mine->row, s->ledger);
    bool trimmed = mine->row->n == 0 || s->ledger < mine->row->at[0].ledger;

    if (s->ledger > mine->newest)
        return false;
    if (!known)
        return trimmed || my_own || (s->closed_ms > 0 && s->entries == 0);
    if (s->closed_ms == 0 || my_own)
        return true;
    return !known->open && known->entries == s->entries;
}

static bool row_is_known(const struct lineage_node *mine, const struct lineage_node *theirs,
                         bool my_own)
{
    const struct segments *row = theirs->row;

    if (theirs->terminated && !mine->terminated)
        return false;
    if (!my_own && row->n > 0 && mine->row->n > 0 && row->at[0].ledger > mine->row->at[0].ledger)
        return false; /* they have trimmed what is in mine */
    for (unsigned i = 0; i < row->n; i++)
        if (!knows(mine, &row->at[i], my_own))
            return false;
    return true;
}

/* ---- judging -------------------------------------------------------------------------------- */

static enum kin if_known(const struct lineage_node *mine, const struct lineage_node *theirs,
                         bool my_own)
{
    return row_is_known(mine, theirs, my_own) ? KIN_BEHIND : KIN_OTHER;
}

/* Nobody's yet: made just now by me, or by Pulsar, or anew after it was deleted. */
static enum kin judge_ownerless(const struct lineage_node *mine, const struct lineage_node *theirs,
                                bool went_back)
{
    if (theirs->version == mine->version)
        return theirs->version == 0 ? KIN_SAME : KIN_OTHER;
    if (!went_back || theirs->version > mine->version)
        return KIN_OTHER;
    return if_known(mine, theirs, false);
}

static enum kin judge_mine(const struct lineage_node *mine, const struct lineage_node *theirs)
{
    if (theirs->version == mine->version)
        return KIN_SAME;
    return theirs->version < mine->version ? if_known(mine, theirs, true) : KIN_OTHER;
}

enum kin lineage_judge(const struct lineage_node *mine, const struct lineage_node *theirs,
                       bool went_back)
{
    const char *before;

    if (!theirs->owners || !*theirs->owners)
        return judge_ownerless(mine, theirs, went_back);
    if (!mine->owners || !*mine->owners)
        return KIN_OTHER;
    switch (place_of(theirs->owners, mine->owners)) {
    case 0:
        return judge_mine(mine, theirs);
    case -1:
        break;
    default:
        return KIN_OTHER; /* it was taken from me */
    }
    before = next_of(theirs->owners);
    if (place_of(mine->owners, theirs->owners) > 0 ||
        (before && place_of(mine->owners, before) > 0))
        return if_known(mine, theirs, false);
    return KIN_OTHER;
}
