#include "broker/session/put_off.h"

#include "broker/broker.h"
#include "broker/metrics.h"
#include "broker/session/reply.h"
#include "common/log.h"
#include "common/memory_guard.h"

static struct session_producer *of_turn(struct list_node *n)
{
    return list_entry(n, struct session_producer, turn);
}

static size_t used(const struct sessions *home)
{
    const int64_t bytes = metric_get(&home->env.metrics->accepted);

    return bytes > 0 ? (size_t)bytes : 0;
}

static bool is_short(const struct sessions *home)
{
    return memory_guard_level(home->env.memory) == MEMORY_SHORT;
}

static void look_soon(struct sessions *home)
{
    if (!timer_armed(&home->look))
        loop_after(home->env.home, &home->look, PUT_OFF_LOOK_US);
}

/* Into a list whose members come due in their order. */
static void wait_in(struct session_producer *p, struct list_node *list, uint64_t us)
{
    struct sessions *home = p->handle.session->home;

    list_remove(&p->turn);
    p->until_us = loop_now(home->env.home) + us;
    list_push_back(list, &p->turn);
    look_soon(home);
}

/* ---- READY -> PUT_OFF -> TOLD ---- */

static void tell(struct session_producer *p)
{
    p->handle.state = HANDLE_TOLD;
    session_producer_gone(&p->handle);
    wait_in(p, &p->handle.session->home->told, PUT_OFF_COMES_BACK_US);
}

static void tell_if_answered(struct session_producer *p)
{
    if (p->handle.state == HANDLE_PUT_OFF && list_empty(&p->receipts.waiting))
        tell(p);
}

static void put_off(struct session_producer *p)
{
    const struct session *s = p->handle.session;

    metric_add(&session_env(s)->metrics->put_off, 1);
    if (!p->was_put_off)
        log_event(LOG_INFO, "producer.put_off", F_STR("topic", p->handle.topic),
                  F_STR("producer", p->guest.name), F_U64("its_bytes", p->accepted),
                  F_U64("all_bytes", used(s->home)), F_U64("max", s->home->publish_max));
    p->was_put_off = true;
    atomic_store_explicit(&p->guest.put_off, true, memory_order_relaxed);
    p->handle.state = HANDLE_PUT_OFF;
    tell_if_answered(p);
}

bool put_off_takes(struct session_producer *p, size_t bytes)
{
    const struct sessions *home = p->handle.session->home;

    if (!is_short(home) && put_off_has_room(home->publish_max, used(home), p->accepted, bytes))
        return true;
    put_off(p);
    return false;
}

void put_off_charge(struct session_producer *p, size_t bytes)
{
    struct session *s = p->handle.session;

    p->accepted += bytes;
    s->publishing += bytes;
    metric_add(&session_env(s)->metrics->accepted, (int64_t)bytes);
}

void put_off_discharge(struct session_producer *p, size_t bytes)
{
    struct session *s = p->handle.session;

    p->accepted -= bytes;
    s->publishing -= bytes;
    metric_add(&session_env(s)->metrics->accepted, -(int64_t)bytes);
    tell_if_answered(p);
}

/* ---- TOLD -> RETURNING -> READY ---- */

static bool has_place(const struct sessions *home)
{
    return !is_short(home) && used(home) <= home->publish_max / 2;
}

static void let_in(struct session_producer *p)
{
    list_remove(&p->turn);
    atomic_store_explicit(&p->guest.put_off, false, memory_order_relaxed);
    p->handle.state = HANDLE_READY;
    session_producer_success(p, p->handle.open_request, true);
}

static void refuse(struct session_producer *p)
{
    struct handle *h = &p->handle;

    reply_error(h->session, h->open_request, reply_code_open(ERR_NOT_READY),
                "too many publishes wait for the bookies: try again");
    h->state = HANDLE_TOLD;
    wait_in(p, &h->session->home->told, PUT_OFF_COMES_BACK_US);
}

void put_off_return(struct session_producer *p, uint64_t request, uint64_t epoch)
{
    struct sessions *home = p->handle.session->home;

    p->handle.open_request = request;
    p->epoch = epoch;
    if (list_empty(&home->returning) && has_place(home)) {
        let_in(p);
        return;
    }
    p->handle.state = HANDLE_RETURNING;
    wait_in(p, &home->returning, PUT_OFF_WAITS_US);
}

void put_off_forget(struct session_producer *p)
{
    list_remove(&p->turn);
}

void put_off_give_up(struct session_producer *p)
{
    put_off_forget(p);
    p->handle.state = HANDLE_SENT_AWAY;
    guest_close(p->handle.guest);
}

/* ---- those who wait ---- */

static bool is_due(const struct sessions *home, const struct list_node *list)
{
    return !list_empty(list) && of_turn(list->next)->until_us <= loop_now(home->env.home);
}

static void look(struct timer *t)
{
    struct sessions *home = container_of(t, struct sessions, look);

    while (!list_empty(&home->returning) && has_place(home))
        let_in(of_turn(home->returning.next));
    while (is_due(home, &home->returning))
        refuse(of_turn(home->returning.next));
    while (is_due(home, &home->told))
        put_off_give_up(of_turn(home->told.next));
    if (!list_empty(&home->returning) || !list_empty(&home->told))
        look_soon(home);
}

/* Never less than two of the largest messages, nor more than a quarter of all memory. */
static size_t publish_max(const struct sessions *home, const struct broker_conf *conf)
{
    const size_t wanted =
        memory_guard_quarter(home->env.memory, (size_t)conf->publish_buffer_mb * 1024 * 1024);
    const size_t least =
        2 * ((size_t)conf->max_message_size + FRAME_PADDING + sizeof(struct sending));

    return wanted > least ? wanted : least;
}

void put_off_init(struct sessions *home, const struct broker_conf *conf)
{
    home->publish_max = publish_max(home, conf);
    home->look.run = look;
    list_init(&home->told);
    list_init(&home->returning);
}

void put_off_end(struct sessions *home)
{
    loop_cancel(home->env.home, &home->look);
}
