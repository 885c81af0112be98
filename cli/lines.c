#include "cli/lines.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

enum { LINE_MAX_BYTES = 64 * 1024 * 1024 };

struct line {
    char *text;
    size_t len;
};

struct lines {
    struct loop *home;
    FILE *file;
    void (*more)(void *ctx);
    void *ctx;
    pthread_mutex_t lock;
    pthread_cond_t room;
    struct line at[LINES_AHEAD];
    unsigned first, n;
    bool end, posted;
    struct task task;
};

static void run_more(struct task *t)
{
    struct lines *l = container_of(t, struct lines, task);
    pthread_mutex_lock(&l->lock);
    l->posted = false;
    pthread_mutex_unlock(&l->lock);
    l->more(l->ctx);
}

static void post_more(struct lines *l)
{
    if (l->posted)
        return;
    l->posted = true;
    loop_post(l->home, &l->task);
}

static void put(struct lines *l, char *text, size_t len)
{
    pthread_mutex_lock(&l->lock);
    while (l->n == LINES_AHEAD)
        pthread_cond_wait(&l->room, &l->lock);
    l->at[(l->first + l->n++) % LINES_AHEAD] = (struct line){.text = text, .len = len};
    post_more(l);
    pthread_mutex_unlock(&l->lock);
}

static void *read_all(void *arg)
{
    struct lines *l = arg;
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    while ((len = getline(&line, &room, l->file)) > 0 && len <= LINE_MAX_BYTES) {
        if (line[len - 1] == '\n')
            len--;
        put(l, mem_string_n(line, (size_t)len), (size_t)len);
    }
    pthread_mutex_lock(&l->lock);
    l->end = true;
    post_more(l);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

struct lines *lines_open(struct loop *home, const char *path, void (*more)(void *ctx), void *ctx)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    pthread_t thread;
    if (!file)
        return NULL;
    struct lines *l = mem_new(struct lines);
    l->home = home;
    l->file = file;
    l->more = more;
    l->ctx = ctx;
    l->task.run = run_more;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->room, NULL);
    if (pthread_create(&thread, NULL, read_all, l) != 0)
        abort();
    pthread_detach(thread); /* it may sit in a read that never ends: the process's end ends it */
    return l;
}

char *lines_next(struct lines *l, size_t *len, int *end)
{
    char *text = NULL;
    pthread_mutex_lock(&l->lock);
    *end = 0;
    if (l->n > 0) {
        struct line one = l->at[l->first];
        l->first = (l->first + 1) % LINES_AHEAD;
        l->n--;
        pthread_cond_signal(&l->room);
        text = one.text;
        *len = one.len;
    } else {
        *end = l->end;
    }
    pthread_mutex_unlock(&l->lock);
    return text;
}
