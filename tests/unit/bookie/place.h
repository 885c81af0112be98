/* place.h - a temporary directory with a bookie in it: started, stopped, killed, started again. */
#ifndef TESTS_UNIT_BOOKIE_PLACE_H
#define TESTS_UNIT_BOOKIE_PLACE_H

#include "bookie/bookie.h"
#include "metadata/metadata.h"

struct place {
    char dir[256];
    struct bookie_conf conf;
    struct loops loops;
    struct metadata *meta;
    struct disk *disk; /* the real one unless it is set */
    struct bookie *bookie;
};

struct place *place_new(void);     /* gives; a configuration, nothing runs */
void place_drop(struct place **p); /* and everything in it */
void place_set(struct place *p, const char *key_value);
void place_forget(struct place *p, const char *name); /* removes what is under dir/name */
MUST_CHECK enum err place_start(struct place *p);     /* with metadata of its own in the place */
void place_prepare(struct place *p); /* the same in two steps: all but the bookie */
MUST_CHECK enum err place_open(struct place *p);
void place_stop(struct place *p);
void place_no_meta(struct place *p); /* the next start finds another cluster */

#endif
