/* names_frame.h - the answer to GET_TOPICS_OF_NAMESPACE, written name by name.
 *
 *   begin(bytes) -> add, add .. (a part a round) -> end -> session_send_frame()
 *
 * Packing a hundred thousand names at once would hold a loop up; so they are written as they are
 * hashed, behind room for what stands before them, whose length is known only at the end.
 *
 * Limits:  the bytes that were announced: NAMES_FRAME_NAME and its length for each name.
 */
#ifndef BROKER_SESSION_NAMES_FRAME_H
#define BROKER_SESSION_NAMES_FRAME_H

#include <stdbool.h>

#include "proto/wire.h"

enum { NAMES_FRAME_NAME = 4, NAMES_FRAME_REST = 256 };

struct names_frame {
    struct slab *slab;
    struct writer names; /* behind the room */
};

void names_frame_begin(struct names_frame *f, size_t bytes);
void names_frame_add(struct names_frame *f, const char *name);
void names_frame_clear(struct names_frame *f); /* no names after all */
struct slice names_frame_end(struct names_frame *f, uint64_t request, bool filtered, bool changed,
                             const char *hash); /* gives */
void names_frame_drop(struct names_frame *f);   /* also one that never began, or has ended */

#endif
