/* watch.h - who wants to hear of changes, and the changes on their way to them.
 *
 *   watch_tell -> an event a watch --loop_post--> w->changed() on w->home
 *
 * An event that was posted may still wait when its watch goes: watch_remove() finds it
 * and makes it say nothing, so that the watch's memory may end at once.
 *
 * Memory:  a watch is its owner's.  The hub outlives its last posted event by itself.
 * Threads: any; watch_remove() on the watch's home.
 * Limits:  WATCH_EVENTS_MAX events wait for one watch and WATCH_BYTES_MAX of values for
 *          all; past that the last event says UNSURE and what follows is left out until
 *          it has run.
 */
#ifndef METADATA_WATCH_H
#define METADATA_WATCH_H

#include "metadata/metadata.h"

enum { WATCH_EVENTS_MAX = 4096, WATCH_BYTES_MAX = 64 * 1024 * 1024 };

struct watch_hub;

struct watch_hub *watch_hub_new(void);
void watch_hub_drop(struct watch_hub **h); /* events that wait say nothing */
void watch_add(struct watch_hub *h, const char *prefix, struct meta_watch *w);
void watch_remove(struct watch_hub *h, struct meta_watch *w);
void watch_tell(struct watch_hub *h, const struct meta_change *c); /* borrows */
void watch_tell_unsure(struct watch_hub *h, uint64_t revision);    /* every watch: relist */

#endif
