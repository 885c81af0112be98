#include "broker/dispatch/pins.h"

#include "common/mem.h"

/* FNV-1a: two messages with one hash are kept together, which harms nobody. */
static uint64_t hash_of(struct view uuid)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < uuid.len; i++)
        h = (h ^ uuid.base[i]) * UINT64_C(0x100000001b3);
    return h;
}

struct pin *pins_find(const struct pins *p, struct view uuid)
{
    uint64_t message = hash_of(uuid);
    struct pin *found;

    HASH_FIND(hh, p->by_message, &message, sizeof(message), found);
    return found;
}

void pins_remove(struct pins *p, struct pin *pin)
{
    HASH_DEL(p->by_message, pin);
    mem_free(pin);
}

struct pin *pins_add(struct pins *p, struct view uuid, struct position first)
{
    struct pin *pin = mem_new(struct pin);

    if (HASH_COUNT(p->by_message) >= PINS_MAX)
        pins_remove(p, p->by_message); /* the head is the oldest */
    pin->message = hash_of(uuid);
    pin->first = first;
    HASH_ADD(hh, p->by_message, message, sizeof(pin->message), pin);
    return pin;
}

/* Its chunks come again, from the first one on, to another consumer. */
void pins_left(struct pins *p, const struct shared_consumer *c)
{
    struct pin *pin, *next;

    HASH_ITER(hh, p->by_message, pin, next)
    {
        if (pin->to != c)
            continue;
        pin->to = NULL;
        pin->holds_back = true;
        pin->waiting = pin->first;
    }
}

void pins_drop(struct pins *p)
{
    struct pin *pin, *next;

    HASH_ITER(hh, p->by_message, pin, next)
    pins_remove(p, pin);
}
