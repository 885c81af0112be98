/* conformance_watch.h - the cases of conformance.h about watches. */
#ifndef TESTS_UNIT_METADATA_CONFORMANCE_WATCH_H
#define TESTS_UNIT_METADATA_CONFORMANCE_WATCH_H

#include "metadata/metadata.h"

void watches_hear_in_order(struct metadata *m);
void watches_hear_of_held_keys(struct metadata *m);
void watches_hear_nothing_after_unwatch(struct metadata *m);
void slow_watches_are_told_to_list(struct metadata *m);
void watches_end_with_the_store(struct metadata *m);

#endif
