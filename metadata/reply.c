#include "metadata/reply.h"

#include "common/mem.h"

static void run(struct task *t)
{
    struct answer *a = container_of(t, struct answer, task);

    a->reply.items = a->items;
    a->call->done(a->call, &a->reply);
    answer_clear(a);
    mem_free(a);
}

struct answer *answer_new(struct meta_call *c)
{
    struct answer *a = mem_new(struct answer);

    a->task.run = run;
    a->call = c;
    return a;
}

void answer_item(struct answer *a, const char *key, struct slice value, int64_t version)
{
    if (a->reply.count == a->room) {
        a->room = a->room ? a->room * 2 : 16;
        a->items = mem_resize(a->items, a->room * sizeof *a->items);
    }
    a->items[a->reply.count++] =
        (struct meta_item){.key = mem_string(key), .value = value, .version = version};
}

void answer_clear(struct answer *a)
{
    slice_drop(&a->reply.value);
    for (size_t i = 0; i < a->reply.count; i++) {
        mem_free((char *)(uintptr_t)a->items[i].key);
        slice_drop(&a->items[i].value);
    }
    mem_free(a->items);
    a->items = NULL;
    a->room = a->reply.count = 0;
    a->reply.more = false;
}

void answer_post(struct answer *a)
{
    meta_note(a->call, a->reply.err);
    loop_post(a->call->home, &a->task);
}

void answer_error(struct meta_call *c, enum err e)
{
    struct answer *a = answer_new(c);

    a->reply.err = e;
    answer_post(a);
}
