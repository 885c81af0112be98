/* listener.h - a watch that remembers what it hears, for tests with trouble in them.
 *
 * Threads: the test's main one asks; the watch lives on a loop of its own.
 */
#ifndef TESTS_UNIT_METADATA_LISTENER_H
#define TESTS_UNIT_METADATA_LISTENER_H

#include "metadata/metadata.h"

struct listener;

struct listener *listener_new(struct metadata *m, const char *prefix);
void listener_drop(struct listener **l);
/* Waits until "put KEY=VALUE", "removed KEY" or "unsure PREFIX" has been heard after the last
 * one that was waited for; what came between is forgotten. */
void listener_await(struct listener *l, const char *what);
unsigned listener_count(struct listener *l, const char *what); /* since it began */

#endif
