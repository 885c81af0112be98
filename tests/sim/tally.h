/* tally.h - what was lived: counted over all lives, printed at the end, and looked for. */
#ifndef TESTS_SIM_TALLY_H
#define TESTS_SIM_TALLY_H

/* What has been lived, a line each: TALLY(name, what it is). */
#define TALLY_LINES(TALLY)                                                      \
    TALLY(ledgers, "ledgers")                                                   \
    TALLY(sealed, "closed by their writer")                                     \
    TALLY(recovered, "recoveries begun")                                        \
    TALLY(adopted, "ledgers found closed by a recoverer")                       \
    TALLY(overtaken, "recoveries that another one closed first")                \
    TALLY(hindered, "recoveries that could not know")                           \
    TALLY(short_end, "ledgers closed before the last entry that was sent")      \
    TALLY(copied, "entries written back")                                       \
    TALLY(replaced, "bookies replaced by a recovery")                           \
    TALLY(many, "recoveries of ledgers of three fragments or more")             \
    TALLY(failed, "writers that gave a ledger up")                              \
    TALLY(fenced, "writers fenced by a bookie")                                 \
    TALLY(changes, "changes of bookies begun by a writer")                      \
    TALLY(changed, "and done")                                                  \
    TALLY(instead, "in the place of the last fragment")                         \
    TALLY(at_quorum, "with an entry that had its quorum and was not confirmed") \
    TALLY(chained, "right after another, before anything was confirmed")        \
    TALLY(change_unsure, "that were looked up because nobody knew")             \
    TALLY(change_fenced, "that met a recovery")                                 \
    TALLY(change_dead, "whose writer died meanwhile")                           \
    TALLY(lacking, "times that a writer went on without a bookie")              \
    TALLY(taken_back, "and had it back, or another")                            \
    TALLY(too_few, "writers that could not go on for want of bookies")          \
    TALLY(crashes, "crashes of bookies")                                        \
    TALLY(frozen, "bookies frozen")                                             \
    TALLY(unsure, "answers of the metadata store that left open what it did")   \
    TALLY(second_reads, "reads asked of a second bookie besides a slow one")    \
    TALLY(steps, "steps")

struct tally {
#define TALLY_FIELD(name, text) unsigned long name;
    TALLY_LINES(TALLY_FIELD)
#undef TALLY_FIELD
};

#endif
