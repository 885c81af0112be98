/* log_ids.h - the entry logs in a directory, in the order of their ids. */
#ifndef BOOKIE_LOG_IDS_H
#define BOOKIE_LOG_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/disk.h"
#include "common/err.h"

struct log_ids {
    uint64_t *at; /* ascending; owned */
    size_t n, room;
};

bool entry_log_name(const char *name, uint64_t *log); /* is a file of that name a log? */
MUST_CHECK enum err log_ids_list(struct disk *disk, const char *dir,
                                 struct log_ids *out); /* gives */
void log_ids_end(struct log_ids *ids);

#endif
