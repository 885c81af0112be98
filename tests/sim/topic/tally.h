/* tally.h - what lives of topics came to: counted over all, printed at the end, and looked for. */
#ifndef TESTS_SIM_TOPIC_TALLY_H
#define TESTS_SIM_TOPIC_TALLY_H

/* A line each: TALLY(name, what it is). */
#define TOPIC_TALLY_LINES(TALLY)                                           \
    TALLY(published, "entries confirmed")                                  \
    TALLY(failed, "entries failed, or never answered")                     \
    TALLY(kept, "of those, found in the log all the same")                 \
    TALLY(openings, "openings")                                            \
    TALLY(open_failed, "that failed")                                      \
    TALLY(takeovers, "while another owner served")                         \
    TALLY(two_owners, "entries offered to an owner that was not the last") \
    TALLY(fenced, "owners that found out")                                 \
    TALLY(closed, "clean ends")                                            \
    TALLY(crashes, "brokers killed")                                       \
    TALLY(frozen, "brokers frozen")                                        \
    TALLY(shortages, "times with too few bookies")                         \
    TALLY(ledgers, "ledgers of topics")                                    \
    TALLY(unused, "that were never listed, or came to nothing")            \
    TALLY(cursor_ledgers, "ledgers of cursors")                            \
    TALLY(kept_more, "ledgers recovered with more than was confirmed")     \
    TALLY(lost_some, "and with less than was sent")                        \
    TALLY(trimmed, "ledgers of topics deleted")                            \
    TALLY(unsure, "answers of the store that left open what it did")       \
    TALLY(lingered, "writes that the store made after such an answer")     \
    TALLY(acks, "acknowledgements, durable")                               \
    TALLY(acks_failed, "not made durable")                                 \
    TALLY(resets, "seeks, durable")                                        \
    TALLY(cursors_read, "cursors read back with a ledger")                 \
    TALLY(made, "cursors made")                                            \
    TALLY(made_unsure, "that may have been, or not")                       \
    TALLY(deleted, "cursors deleted")                                      \
    TALLY(terminated, "topics terminated")                                 \
    TALLY(reads, "whole readings of a topic")

struct topic_tally {
#define TOPIC_TALLY_FIELD(name, text) unsigned long name;
    TOPIC_TALLY_LINES(TOPIC_TALLY_FIELD)
#undef TOPIC_TALLY_FIELD
};

#endif
