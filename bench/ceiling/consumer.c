#include <string.h>

#include "bench/ceiling/ring.h"
#include "bench/ceiling/wire.h"

/* Every message of a batch is looked at. */
static uint64_t walk(const struct entry_head *h)
{
    const uint8_t *at = (const uint8_t *)(h + 1), *end = at + h->len;
    uint64_t messages = 0;
    while (at < end) {
        uint32_t size;
        memcpy(&size, at, sizeof size);
        at += 2 * sizeof size + size;
        messages++;
    }
    return messages;
}

void consumer_run(const struct options *o, struct account *a, uint16_t relay_port)
{
    struct percentiles times;
    struct ring ring;
    const struct entry_head *h;
    int relay = wire_connect(relay_port);
    wire_tune(relay, true);
    ring_open(&ring);
    percentiles_init(&times);
    account_ready(a);
    while (ring_receive(&ring, relay) > 0) {
        uint64_t now = now_ns();
        while ((h = ring_next(&ring))) {
            if (walk(h) != o->batch)
                die("a batch of another size");
            account_note(a, 1);
            if (a->is_warm)
                percentiles_note(&times, now > h->due_ns ? (now - h->due_ns) / 1000 : 0);
        }
    }
    account_times(a, &times);
    account_close(a);
}
