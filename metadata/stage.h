/* stage.h - a group of changes that are decided but not yet durable.
 *
 * Each write is checked against what the store will be once everything staged before it
 * is committed; then all of them go to the shelf in one synced write.  Until that has
 * returned nobody is told anything.
 *
 *   stage_apply, stage_get ... -> stage_commit -> .changes say what watches must hear
 *                                             \-> failed: as if nothing had been staged
 * Threads: the store's.
 */
#ifndef METADATA_STAGE_H
#define METADATA_STAGE_H

#include "metadata/metadata.h"
#include "metadata/shelf.h"

struct stage {
    struct shelf *shelf;
    struct key_map held;         /* committed keys of this session */
    struct key_map waiting;      /* what is staged, the last state of each key */
    uint64_t revision;           /* of the newest staged change */
    struct meta_change *changes; /* every step, in order */
    size_t n, room;
    size_t bytes;
};

void stage_init(struct stage *s, struct shelf *shelf);
void stage_end(struct stage *s);
/* Gives out->value; ERR_NOT_FOUND. */
MUST_CHECK enum err stage_get(struct stage *s, const char *key, struct key_item *out);
/* All steps or none.  A key may be changed once (ERR_NOT_ALLOWED).  Shares the values. */
MUST_CHECK enum err stage_apply(struct stage *s, const struct meta_op *ops, size_t n);
MUST_CHECK enum err stage_hold(struct stage *s, const char *key, struct slice value);
MUST_CHECK enum err stage_release(struct stage *s, const char *key);
MUST_CHECK enum err stage_count(struct stage *s, const char *key, int64_t n, int64_t *first);
MUST_CHECK enum err stage_commit(struct stage *s); /* .changes stay until stage_reset() */
void stage_reset(struct stage *s);

#endif
