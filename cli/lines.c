#include "cli/lines.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

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
    size_t bytes;
    bool end, posted, closed;
    unsigned holders; /* the owner, the thread, the task */
    const char *error;
    struct task task;
};

/* With the lock, which it gives up. */
static void let_go(struct lines *l)
{
    bool last = --l->holders == 0;
    pthread_mutex_unlock(&l->lock);
    if (!last)
        return;
    for (; l->n > 0; l->n--, l->first++)
        mem_free(l->at[l->first % LINES_AHEAD].text);
    if (l->file != stdin)
        fclose(l->file);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->room);
    mem_free(l);
}

static void run_more(struct task *t)
{
    struct lines *l = container_of(t, struct lines, task);
    pthread_mutex_lock(&l->lock);
    l->posted = false;
    bool closed = l->closed;
    pthread_mutex_unlock(&l->lock);
    if (!closed)
        l->more(l->ctx);
    pthread_mutex_lock(&l->lock);
    let_go(l);
}

static void post_more(struct lines *l)
{
    if (l->posted || l->closed)
        return;
    l->posted = true;
    l->holders++;
    loop_post(l->home, &l->task);
}

static bool is_full(const struct lines *l)
{
    return l->n == LINES_AHEAD || (l->n > 0 && l->bytes > LINES_AHEAD_BYTES);
}

/* False: nobody wants more. */
static bool put(struct lines *l, const char *text, size_t len)
{
    pthread_mutex_lock(&l->lock);
    while (is_full(l) && !l->closed)
        pthread_cond_wait(&l->room, &l->lock);
    bool wanted = !l->closed;
    if (wanted) {
        l->at[(l->first + l->n++) % LINES_AHEAD] =
            (struct line){.text = mem_string_n(text, len), .len = len};
        l->bytes += len;
        post_more(l);
    }
    pthread_mutex_unlock(&l->lock);
    return wanted;
}

struct buffer {
    char *base;
    size_t len, room;
};

/* Up to a newline or the end; false when there is nothing, or too much. */
static bool read_line(struct lines *l, struct buffer *b)
{
    int c;
    b->len = 0;
    while ((c = getc_unlocked(l->file)) != EOF && c != '\n') {
        if (b->len == LINE_BYTES) {
            l->error = "a line of more than 64 MiB";
            return false;
        }
        if (b->len == b->room) {
            b->room = b->room ? b->room * 2 : 256;
            b->base = mem_resize(b->base, b->room);
        }
        b->base[b->len++] = (char)c;
    }
    if (c == EOF && ferror(l->file)) {
        l->error = strerrordesc_np(errno);
        return false;
    }
    return c == '\n' || b->len > 0;
}

static void *read_all(void *arg)
{
    struct lines *l = arg;
    struct buffer b = {0};
    while (read_line(l, &b) && put(l, b.base, b.len))
        ;
    mem_free(b.base);
    pthread_mutex_lock(&l->lock);
    l->end = true;
    post_more(l);
    let_go(l);
    return NULL;
}

struct lines *lines_open(struct loop *home, const char *path, void (*more)(void *ctx), void *ctx)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    if (!file)
        return NULL;
    struct lines *l = mem_new(struct lines);
    l->home = home;
    l->file = file;
    l->more = more;
    l->ctx = ctx;
    l->holders = 2;
    l->task.run = run_more;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->room, NULL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, read_all, l) != 0)
        abort();
    pthread_detach(thread); /* it may sit in a read that never ends: the process's end ends it */
    return l;
}

char *lines_next(struct lines *l, size_t *len, bool *end)
{
    char *text = NULL;
    pthread_mutex_lock(&l->lock);
    *end = false;
    if (l->n > 0) {
        struct line one = l->at[l->first];
        l->first = (l->first + 1) % LINES_AHEAD;
        l->n--;
        l->bytes -= one.len;
        pthread_cond_signal(&l->room);
        text = one.text;
        *len = one.len;
    } else {
        *end = l->end;
    }
    pthread_mutex_unlock(&l->lock);
    return text;
}

const char *lines_error(struct lines *l)
{
    pthread_mutex_lock(&l->lock);
    const char *error = l->end ? l->error : NULL;
    pthread_mutex_unlock(&l->lock);
    return error;
}

void lines_close(struct lines **lp)
{
    struct lines *l = *lp;
    *lp = NULL;
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->closed = true;
    pthread_cond_signal(&l->room);
    let_go(l);
}
