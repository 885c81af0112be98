/* file_ids.h - the numbered files of one kind in a directory, in the order of their ids: 16 digits
 * and an ending. */
#ifndef BOOKIE_FILE_IDS_H
#define BOOKIE_FILE_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/disk.h"
#include "common/err.h"

#define ENTRY_LOG_ENDING ".log"
#define JOURNAL_ENDING   ".jnl"

struct file_ids {
    uint64_t *at; /* ascending; owned */
    size_t n, room;
};

bool file_id(const char *name, const char *ending, uint64_t *id); /* is it one of that kind? */
MUST_CHECK enum err file_ids_list(struct disk *disk, const char *dir, const char *ending,
                                  struct file_ids *out); /* gives */
void file_ids_end(struct file_ids *ids);

#endif
