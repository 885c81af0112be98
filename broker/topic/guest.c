#include "broker/topic/guest.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "broker/topic/topic.h"

enum { WHY_MAX = 192 };

#define TO(state) (1u << GUEST_##state)

static const uint32_t may_become[] = {
    [GUEST_ARRIVING] = TO(TURNING) | TO(QUEUED) | TO(IN) | TO(REFUSED),
    [GUEST_TURNING] = TO(GONE),
    [GUEST_QUEUED] = TO(ARRIVING) | TO(REFUSED) | TO(GONE),
    [GUEST_IN] = TO(SENT_AWAY) | TO(LEAVING),
    [GUEST_SENT_AWAY] = TO(LEAVING),
    [GUEST_REFUSED] = TO(GONE),
    [GUEST_LEAVING] = TO(GONE),
    [GUEST_GONE] = 0,
};

static void become(struct guest *g, enum guest_state next)
{
    assert(may_become[g->state] & 1u << next);
    g->state = next;
}

/* ---- the front's ends of the tasks ---- */

static void on_told(struct task *t)
{
    struct guest *g = container_of(t, struct guest, told);
    g->front_ops->opened(g, g->err, g->why ? g->why : "");
}

static void on_away(struct task *t)
{
    struct guest *g = container_of(t, struct guest, away);
    g->front_ops->go(g);
}

static void on_ask(struct task *t)
{
    struct guest *g = container_of(t, struct guest, ask);
    g->front_ops->check(g);
}

static void on_end(struct task *t)
{
    struct guest *g = container_of(t, struct guest, end);
    mem_free(g->why);
    g->why = NULL;
    g->front_ops->ended(g);
}

static void post(struct loop *l, struct task *t, void (*run)(struct task *t))
{
    t->run = run;
    loop_post(l, t);
}

/* ---- the back ---- */

static void end(struct guest *g)
{
    struct topic *t = g->topic;

    become(g, GUEST_GONE);
    assert(list_empty(&g->rivals));
    g->topic = NULL;
    post(g->front, &g->end, on_end);
    if (t)
        topic_guest_left(t);
}

static void tell(struct guest *g, enum err err)
{
    g->err = err;
    post(g->front, &g->told, on_told);
}

void guest_admit(struct guest *g)
{
    become(g, GUEST_IN);
    g->since_ms = loop_wall_ms();
    topic_guest_admitted(g->topic);
    tell(g, ERR_OK);
}

void guest_refuse(struct guest *g, enum err err, const char *fmt, ...)
{
    char why[WHY_MAX];
    va_list args;

    if (g->state == GUEST_TURNING) {
        end(g);
        return;
    }
    va_start(args, fmt);
    vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    g->why = mem_string(why);
    become(g, GUEST_REFUSED);
    tell(g, err);
}

void guest_arrive_again(struct guest *g)
{
    if (g->state == GUEST_TURNING)
        end(g);
    else if (!topic_is_ready(g->topic))
        guest_refuse(g, ERR_NOT_READY, "the topic is being unloaded");
    else
        g->back_ops->arrive(g);
}

static void topic_came(struct topics_call *c, enum err err, struct topic *t, const char *why)
{
    struct guest *g = container_of(c, struct guest, call);

    if (err) {
        guest_refuse(g, err, "%s", why);
        return;
    }
    g->topic = t;
    topic_guest_came(t);
    guest_arrive_again(g);
}

static void on_open(struct task *t)
{
    struct guest *g = container_of(t, struct guest, open);

    g->state = GUEST_ARRIVING;
    list_init(&g->node);
    list_init(&g->rivals);
    list_init(&g->rival);
    g->call = (struct topics_call){.name = g->topic_name, .create = g->create, .done = topic_came};
    topics_get(g->topics, &g->call);
}

void guest_queue_behind(struct guest *g, struct guest *rival)
{
    become(g, GUEST_QUEUED);
    list_push_back(&rival->rivals, &g->rival);
    if (rival->checking)
        return;
    rival->checking = true;
    post(rival->front, &rival->ask, on_ask);
}

void guest_send_away(struct guest *g)
{
    if (g->state == GUEST_IN) {
        become(g, GUEST_SENT_AWAY);
        post(g->front, &g->away, on_away);
    }
}

static void on_answer(struct task *t)
{
    struct guest *g = container_of(t, struct guest, answer);

    g->checking = false;
    for (struct list_node *n; (n = list_pop_front(&g->rivals));)
        guest_refuse(list_entry(n, struct guest, rival), g->back_ops->busy, "%s",
                     err_text(g->back_ops->busy));
}

static void rivals_try_again(struct guest *g)
{
    for (struct list_node *n; (n = list_pop_front(&g->rivals));) {
        struct guest *other = list_entry(n, struct guest, rival);
        become(other, GUEST_ARRIVING);
        guest_arrive_again(other);
    }
}

static void leave(struct guest *g)
{
    guest_holds(g); /* so that letting go below is the only end */
    become(g, GUEST_LEAVING);
    g->back_ops->leave(g);
    rivals_try_again(g);
    topic_guest_closed(g->topic);
    guest_lets_go(g);
}

static void on_close(struct task *t)
{
    struct guest *g = container_of(t, struct guest, close);

    switch (g->state) {
    case GUEST_ARRIVING:
        become(g, GUEST_TURNING);
        break;
    case GUEST_QUEUED:
        list_remove(&g->rival);
        end(g);
        break;
    case GUEST_REFUSED:
        end(g);
        break;
    case GUEST_IN:
    case GUEST_SENT_AWAY:
        leave(g);
        break;
    case GUEST_TURNING:
    case GUEST_LEAVING:
    case GUEST_GONE:
        assert(false); /* guest_close() takes care that it comes once */
    }
}

void guest_lets_go(struct guest *g)
{
    assert(g->under_way > 0);
    if (--g->under_way == 0 && g->state == GUEST_LEAVING)
        end(g);
}

void guest_since(const struct guest *g, char out[GUEST_SINCE_TEXT])
{
    const time_t seconds = (time_t)(g->since_ms / 1000);
    struct tm t;
    size_t n;

    gmtime_r(&seconds, &t);
    n = strftime(out, GUEST_SINCE_TEXT, "%Y-%m-%dT%H:%M:%S", &t);
    snprintf(out + n, GUEST_SINCE_TEXT - n, ".%03uZ", (unsigned)(g->since_ms % 1000));
}

/* The port is what differs. */
static size_t host_len(const char *address)
{
    const char *port = strrchr(address, ':');

    return port ? (size_t)(port - address) : strlen(address);
}

unsigned guests_from_there(const struct list_node *all, const struct guest *g)
{
    const char *here = g->who->address;
    const size_t len = host_len(here);
    unsigned same = 0;

    list_each(all, n)
    {
        const char *there = list_entry(n, struct guest, node)->who->address;
        same += host_len(there) == len && strncmp(here, there, len) == 0;
    }
    return same;
}

/* ---- the front ---- */

void guest_open(struct guest *g)
{
    g->closing = false;
    g->topic = NULL;
    g->checking = false;
    g->under_way = 0;
    post(guest_back_loop(g), &g->open, on_open);
}

void guest_close(struct guest *g)
{
    if (g->closing)
        return;
    g->closing = true;
    post(guest_back_loop(g), &g->close, on_close);
}

void guest_alive(struct guest *g)
{
    if (!g->closing)
        post(guest_back_loop(g), &g->answer, on_answer);
}
