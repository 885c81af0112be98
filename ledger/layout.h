/* layout.h - a ledger's metadata as the client uses it: which bookies hold which entries, how
 * entries are sealed, where it ends.
 *
 * The record behind it is kept, so that what we do not know survives a rewrite.
 */
#ifndef LEDGER_LAYOUT_H
#define LEDGER_LAYOUT_H

#include "ledger/bookies.h"
#include "ledger/facts.h"
#include "metadata/records.h"

struct layout {
    Bookkeeper__LedgerMetadataFormat *record; /* owned */
    int64_t version;                          /* of the key, for the next compare-and-set */
    int64_t newest;                           /* that this was read or written at */
    struct ledger_facts facts;
    unsigned n;
    struct fragment *fragments; /* n, in order of first; owned */
    struct digest digest;
    uint8_t key[MASTER_KEY_SIZE];
    struct placement_record groups; /* its bookies', if grouped */
    bool grouped;
};

/* Fills an empty layout or replaces what is there; on failure it is as before. */
MUST_CHECK enum err layout_read(struct layout *l, struct bookies *bookies, struct view value,
                                int64_t version);
void layout_drop(struct layout *l);
/* What the store says is from before what is known of that very ledger: it was put back to an older
 * state.  Otherwise false: the same, or somebody else's doing, which counts. */
bool layout_is_behind(const struct layout *stored, const struct layout *known);
/* As layout_read(), but what is behind teaches nothing but the version to write over. */
MUST_CHECK enum err layout_learn(struct layout *l, struct bookies *bookies, struct view value,
                                 int64_t version);
struct slice layout_value(const struct layout *l);       /* as it is; gives */
struct bookies_wish layout_wish(const struct layout *l); /* borrows from l */
/* The fragment that e is in. */
const struct fragment *layout_find(const struct layout *l, entry_id e);

/* A new ledger's value: CRC32C, empty password, one fragment.  Gives. */
struct slice layout_first(struct bookies *bookies, struct quorum q, const uint32_t *members,
                          int64_t token, const struct ledger_tag *tags, unsigned n);
bool layout_has_token(const struct layout *l, int64_t token);
/* The value with `next` as the last fragment, in place of one with the same first entry; gives. */
struct slice layout_changed(const struct layout *l, struct bookies *bookies,
                            const struct fragment *next);
/* The value with another bookie at a slot of a fragment; gives. */
struct slice layout_moved(const struct layout *l, struct bookies *bookies, unsigned fragment,
                          unsigned slot, uint32_t to);
struct slice layout_marked(const struct layout *l); /* the value, IN_RECOVERY; gives */
/* The value, CLOSED, with fragments that a recovery changed; gives. */
struct slice layout_closed(const struct layout *l, struct bookies *bookies, entry_id last,
                           int64_t length, const struct fragment *changed, unsigned n);

#endif
