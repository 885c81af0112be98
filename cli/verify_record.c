#include "cli/verify_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/crc32c.h"

/* Up to and with the space before the record's own sum. */
enum { FRONT = 13 + VERIFY_RUN_CHARS + 1 + 20 + 1 + 8 + 1, OWN = 8 };

static void filler(char *into, size_t size, uint64_t seq)
{
    for (size_t i = 0; i < size; i++)
        into[i] = (char)('a' + (seq + i) % 26);
}

void verify_record_write(const struct verify_record *r, char *into, size_t size)
{
    char front[FRONT + 1], own[OWN + 2];
    snprintf(front, sizeof front, "lgm-verify 1 %s %020" PRIu64 " %08" PRIx32 " ", r->run, r->seq,
             r->before);
    memcpy(into, front, FRONT);
    filler(into + FRONT + OWN + 1, size - FRONT - OWN - 1, r->seq);
    uint32_t crc = crc32c(into, FRONT);
    crc = crc32c_more(crc, into + FRONT + OWN + 1, size - FRONT - OWN - 1);
    snprintf(own, sizeof own, "%08" PRIx32 " ", crc);
    memcpy(into + FRONT, own, OWN + 1);
}

enum err verify_record_read(struct view payload, struct verify_record *out)
{
    char text[FRONT + OWN + 2];
    uint32_t own;
    *out = (struct verify_record){0};
    if (payload.len < VERIFY_RECORD_LEAST || memcmp(payload.base, "lgm-verify 1 ", 13) != 0)
        return ERR_NOT_FOUND;
    memcpy(text, payload.base, FRONT + OWN + 1);
    text[FRONT + OWN + 1] = '\0';
    if (sscanf(text, "lgm-verify 1 %16[0-9a-f] %" SCNu64 " %" SCNx32 " %" SCNx32, out->run,
               &out->seq, &out->before, &own) != 4)
        return ERR_CHECKSUM;
    uint32_t crc = crc32c(payload.base, FRONT);
    crc = crc32c_more(crc, payload.base + FRONT + OWN + 1, payload.len - FRONT - OWN - 1);
    return crc == own ? ERR_OK : ERR_CHECKSUM;
}
