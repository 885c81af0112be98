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
    TALLY(slept, "writers frozen for long")                                     \
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
    TALLY(wiped, "disks lost")                                                  \
    TALLY(limbo, "bookies told to start without what they had")                 \
    TALLY(healed, "and made up for it")                                         \
    TALLY(fresh, "bookies that are new at the address of one that has left")    \
    TALLY(unknown, "reads answered with \"unknown\" for want of a disk")        \
    TALLY(audits, "audits")                                                     \
    TALLY(marks, "ledgers marked")                                              \
    TALLY(marked_again, "while they were marked already")                       \
    TALLY(unmarked, "marks taken away")                                         \
    TALLY(newer, "marks that stayed, because they were newer")                  \
    TALLY(together, "repairs begun while another was at the same ledger")       \
    TALLY(moved, "slots of fragments given to other bookies")                   \
    TALLY(moved_open, "of ledgers that were not closed")                        \
    TALLY(move_lost, "that somebody else was faster than")                      \
    TALLY(waited, "repairs that left the writer its time")                      \
    TALLY(mend_fenced, "ledgers fenced for a repair")                           \
    TALLY(rewritten, "copies written again where they were lacking")            \
    TALLY(mend_dead, "re-replicators that died at it")                          \
    TALLY(stale_census, "repairs that waited for a newer census")               \
    TALLY(second_reads, "reads asked of a second bookie besides a slow one")    \
    TALLY(batches, "reads of many entries at once that were answered")          \
    TALLY(short_batches, "and did not get to the last one")                     \
    TALLY(no_batches, "that a bookie did not know")                             \
    TALLY(steps, "steps")

struct tally {
#define TALLY_FIELD(name, text) unsigned long name;
    TALLY_LINES(TALLY_FIELD)
#undef TALLY_FIELD
};

#endif
