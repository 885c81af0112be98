#include "broker/topic/topics_names.h"

#include <string.h>

#include "broker/topic/topic.h"
#include "common/mem.h"

static void add(struct topics_names_call *c, const char *name)
{
    c->bytes += strlen(name);
    if (c->bytes > c->max_bytes) {
        c->err = ERR_TOO_BIG;
        return;
    }
    if (c->n == c->room) {
        c->room = c->room ? c->room * 2 : 64;
        c->names = mem_resize(c->names, c->room * sizeof(c->names[0]));
    }
    c->names[c->n++] = mem_string(name);
}

static void visit(struct topics_walk *w, struct topic *t)
{
    struct topics_names_call *c = container_of(w, struct topics_names_call, walk);

    if (!c->err && topic_is_ready(t) && strncmp(t->name.full, c->prefix, strlen(c->prefix)) == 0)
        add(c, t->name.full);
}

static void home(struct task *t)
{
    struct topics_names_call *c = container_of(t, struct topics_names_call, task);
    c->done(c, c->err);
}

static void arrive(struct task *t);

static void go_on(struct topics_names_call *c)
{
    bool over = c->loop == c->map->n;

    c->task.run = over ? home : arrive;
    loop_post(over ? c->home : topics_loop(c->map->at[c->loop]), &c->task);
}

static void walked(struct topics_walk *w)
{
    struct topics_names_call *c = container_of(w, struct topics_names_call, walk);

    c->loop++;
    go_on(c);
}

static void arrive(struct task *t)
{
    struct topics_names_call *c = container_of(t, struct topics_names_call, task);

    c->walk = (struct topics_walk){.visit = visit, .over = walked};
    topics_walk(c->map->at[c->loop], &c->walk);
}

void topics_names(struct topics_names_call *c)
{
    c->names = NULL;
    c->n = c->room = c->bytes = 0;
    c->loop = 0;
    c->err = ERR_OK;
    go_on(c);
}

void topics_names_drop(struct topics_names_call *c)
{
    for (size_t i = 0; i < c->n; i++)
        mem_free(c->names[i]);
    mem_free(c->names);
    c->names = NULL;
    c->n = 0;
}
