/* What producers and consumers of a session have in common: ids, and whether it lives. */
#include "broker/broker.h"
#include "broker/session/reply.h"
#include "broker/session/session.h"

struct handle *handle_find(struct handle *table, uint64_t id)
{
    struct handle *found;

    HASH_FIND(hh, table, &id, sizeof(id), found);
    return found;
}

void handle_add(struct session *s, struct handle **table, struct handle *h)
{
    h->session = s;
    h->state = HANDLE_OPENING;
    list_init(&h->checking);
    s->handles++;
    session_hold(s);
    HASH_ADD(hh, *table, id, sizeof(h->id), h);
}

void handle_remove(struct handle **table, struct handle *h)
{
    if (h->state == HANDLE_LEAVING)
        return;
    HASH_DEL(*table, h);
    h->state = HANDLE_LEAVING;
}

bool handle_ended(struct handle *h)
{
    struct session *s = h->session;

    h->ended = true;
    list_remove(&h->checking);
    if (h->answer_close)
        reply_success(s, h->close_request);
    return h->state == HANDLE_LEAVING;
}

/* ---- is the connection alive? ---- */

static void on_silence(struct timer *t)
{
    session_fail(container_of(t, struct session, check_due), ERR_TIMEOUT, "liveness check");
}

void session_check_init(struct session *s)
{
    list_init(&s->checking);
    s->check_due.run = on_silence;
}

void handle_check(struct handle *h)
{
    struct session *s = h->session;
    struct loop *home = session_env(s)->home;

    if (s->state == SESSION_ENDED || h->state == HANDLE_LEAVING)
        return; /* it is being closed: that answers too */
    list_push_back(&s->checking, &h->checking);
    if (timer_armed(&s->check_due))
        return;
    reply_ping(s);
    loop_after(home, &s->check_due, (uint64_t)session_env(s)->conf->liveness_check_ms * 1000);
}

void session_checked(struct session *s)
{
    if (list_empty(&s->checking))
        return;
    loop_cancel(session_env(s)->home, &s->check_due);
    for (struct list_node *n; (n = list_pop_front(&s->checking));)
        guest_alive(list_entry(n, struct handle, checking)->guest);
}
