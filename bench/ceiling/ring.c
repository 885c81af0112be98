#include "bench/ceiling/ring.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/crc32c.h"

enum { HUGE = 2 << 20, PAGE = 4096 };

static uint8_t *reserve(void)
{
    uint8_t *all = mmap(NULL, 2 * RING_BYTES + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        die("mmap");
    uintptr_t aligned = ((uintptr_t)all + HUGE - 1) & ~(uintptr_t)(HUGE - 1);
    return all + (aligned - (uintptr_t)all);
}

void ring_open(struct ring *r)
{
    int fd = memfd_create("ring", 0);
    if (fd < 0 || ftruncate(fd, (off_t)RING_BYTES) != 0)
        die("memfd");
    *r = (struct ring){.base = reserve()};
    for (unsigned i = 0; i < 2; i++) {
        uint8_t *half = r->base + i * RING_BYTES;
        if (mmap(half, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
            (void *)half)
            die("mmap");
        madvise(half, RING_BYTES, MADV_HUGEPAGE);
    }
    for (uint64_t i = 0; i < 2 * RING_BYTES; i += PAGE)
        r->base[i] = 1;
    close(fd);
}

struct entry_head *ring_next(struct ring *r)
{
    struct entry_head *h = ring_entry(r, r->parsed);
    if (r->received - r->parsed < sizeof *h || r->received - r->parsed < entry_bytes(h))
        return NULL;
    if (crc32c(h + 1, h->len) != h->crc) {
        fprintf(stderr, "an entry has been changed on its way\n");
        exit(EXIT_FAILURE);
    }
    r->parsed += entry_bytes(h);
    return h;
}

int64_t ring_receive(struct ring *r, int fd)
{
    ssize_t n = recv(fd, ring_at(r, r->received), RECEIVE_MAX, 0);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? -1 : 0;
    r->received += (uint64_t)n;
    return n;
}
