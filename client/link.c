#include "client/link.h"

#include <assert.h>
#include <string.h>

#include "client/server_error.h"
#include "common/log.h"
#include "common/mem.h"

enum {
    PROTOCOL_VERSION = 21,
    KEEP_ALIVE_US = 30 * 1000 * 1000,
    COMMAND_ARENA = 16 * 1024 * 1024,
    WRITE_HIGH = 8 * 1024 * 1024,
    FRAME_LIMIT = 64 * 1024 * 1024 + FRAME_PADDING, /* a broker may allow messages of 64 MiB */
};

struct link {
    struct link_env *env;
    enum { LINK_GREETING, LINK_READY } state;
    char *host;
    uint16_t port;
    struct conn *conn;
    struct arena *arena;
    size_t max_message;
    bool heard; /* anything since the last ping */
    struct timer keep_alive;
    struct list_node users;
    struct list_node requests;
    struct list_node node; /* in env->links */
};

void link_env_init(struct link_env *e, struct loop *home, struct tls *tls, uint64_t timeout_us)
{
    *e = (struct link_env){.home = home, .tls = tls, .timeout_us = timeout_us};
    list_init(&e->links);
}

uint64_t link_next_request(struct link_env *e)
{
    return e->next_request++;
}

size_t link_max_message(const struct link *l)
{
    return l->max_message;
}

bool link_is_ready(const struct link *l)
{
    return l->state == LINK_READY;
}

void link_send(struct link *l, struct slice frame)
{
    conn_send(l->conn, frame);
}

void link_send_chain(struct link *l, struct chain *c)
{
    conn_send_chain(l->conn, c);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void request_end(struct link_request *r)
{
    loop_cancel(r->link->env->home, &r->deadline);
    list_remove(&r->node);
    r->link = NULL;
}

void link_forget(struct link_request *r)
{
    if (r->link)
        request_end(r);
}

static void request_timed_out(struct timer *t)
{
    struct link_request *r = container_of(t, struct link_request, deadline);
    request_end(r);
    r->done(r, ERR_TIMEOUT, "the broker did not answer in time", NULL);
}

void link_call(struct link *l, const Pulsar__Proto__BaseCommand *cmd, uint64_t id,
               struct link_request *r)
{
    assert(!r->link);
    r->id = id;
    r->link = l;
    r->deadline = (struct timer){.run = request_timed_out};
    list_push_back(&l->requests, &r->node);
    loop_after(l->env->home, &r->deadline, l->env->timeout_us);
    link_send(l, command_frame(cmd));
}

static void answer(struct link *l, uint64_t id, enum err err, const char *text,
                   const Pulsar__Proto__BaseCommand *reply)
{
    list_each(&l->requests, node)
    {
        struct link_request *r = list_entry(node, struct link_request, node);
        if (r->id != id)
            continue;
        request_end(r);
        r->done(r, err, text, reply);
        return;
    }
}

/* ---- the end of a link ----------------------------------------------------------------------- */

static void user_off(struct link_user *u)
{
    list_remove(&u->node);
    u->link = NULL;
}

static void link_free(struct link *l)
{
    loop_cancel(l->env->home, &l->keep_alive);
    list_remove(&l->node);
    arena_drop(&l->arena);
    mem_free(l->host);
    mem_free(l);
}

/* Whoever is told may join another link, to the same broker too: this one is out of the
 * list first. */
static void link_end(struct link *l, enum err err)
{
    list_remove(&l->node);
    struct list_node *node;
    while ((node = list_pop_front(&l->requests))) {
        struct link_request *r = list_entry(node, struct link_request, node);
        request_end(r);
        r->done(r, ERR_CLOSED, "the connection was lost", NULL);
    }
    while ((node = list_pop_front(&l->users))) {
        struct link_user *u = list_entry(node, struct link_user, node);
        user_off(u);
        u->ops->lost(u, err);
    }
    link_free(l);
}

void link_break(struct link *l, const char *why)
{
    log_event(LOG_WARN, "client.link_broken", F_STR("peer", conn_peer(l->conn)),
              F_STR("reason", why));
    conn_close(&l->conn);
    link_end(l, ERR_CLOSED);
}

void link_env_close(struct link_env *e)
{
    struct list_node *node;
    while ((node = list_pop_front(&e->links))) {
        struct link *l = list_entry(node, struct link, node);
        list_each(&l->requests, r) request_end(list_entry(r, struct link_request, node));
        list_each(&l->users, u) user_off(list_entry(u, struct link_user, node));
        conn_finish(&l->conn);
        link_free(l);
    }
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void run_ready(struct task *t)
{
    struct link_user *u = container_of(t, struct link_user, ready_task);
    u->ready_posted = false;
    if (u->link && u->link->state == LINK_READY)
        u->ops->ready(u);
}

static void post_ready(struct link *l, struct link_user *u)
{
    if (u->ready_posted)
        return;
    u->ready_posted = true;
    u->ready_task.run = run_ready;
    loop_post(l->env->home, &u->ready_task);
}

static void on_connected(struct link *l, const Pulsar__Proto__CommandConnected *c)
{
    l->state = LINK_READY;
    if (c->has_max_message_size && c->max_message_size > 0)
        l->max_message = (size_t)c->max_message_size;
    list_each(&l->users, node) post_ready(l, list_entry(node, struct link_user, node));
}

static struct link_user *user_of(struct link *l, int kind, uint64_t id)
{
    list_each(&l->users, node)
    {
        struct link_user *u = list_entry(node, struct link_user, node);
        if ((int)u->kind == kind && u->id == id)
            return u;
    }
    return NULL;
}

static void to_user(struct link *l, int kind, uint64_t id, const Pulsar__Proto__BaseCommand *cmd,
                    const struct frame *f, struct slice bytes)
{
    struct link_user *u = user_of(l, kind, id);
    if (u)
        u->ops->command(u, cmd, f, bytes);
}

static void pong(struct link *l)
{
    Pulsar__Proto__BaseCommand base = PULSAR__PROTO__BASE_COMMAND__INIT;
    Pulsar__Proto__CommandPong pong = PULSAR__PROTO__COMMAND_PONG__INIT;
    base.type = PULSAR__PROTO__BASE_COMMAND__TYPE__PONG;
    base.pong = &pong;
    link_send(l, command_frame(&base));
}

/* Replies to requests; false: it is none. */
static bool on_reply(struct link *l, const Pulsar__Proto__BaseCommand *c)
{
    switch (c->type) {
    case PULSAR__PROTO__BASE_COMMAND__TYPE__SUCCESS:
        answer(l, c->success->request_id, ERR_OK, NULL, c);
        return true;
    case PULSAR__PROTO__BASE_COMMAND__TYPE__ERROR:
        answer(l, c->error->request_id, server_error_to_err((int)c->error->error),
               c->error->message, c);
        return true;
    case PULSAR__PROTO__BASE_COMMAND__TYPE__PRODUCER_SUCCESS:
        answer(l, c->producer_success->request_id, ERR_OK, NULL, c);
        return true;
    case PULSAR__PROTO__BASE_COMMAND__TYPE__LOOKUP_RESPONSE:
        answer(l, c->lookuptopicresponse->request_id,
               c->lookuptopicresponse->has_error
                   ? server_error_to_err((int)c->lookuptopicresponse->error)
                   : ERR_OK,
               c->lookuptopicresponse->message, c);
        return true;
    case PULSAR__PROTO__BASE_COMMAND__TYPE__ACK_RESPONSE:
        answer(l, c->ackresponse->request_id,
               c->ackresponse->has_error ? server_error_to_err((int)c->ackresponse->error) : ERR_OK,
               c->ackresponse->message, c);
        return true;
    default:
        return false;
    }
}

static void on_command(struct link *l, const Pulsar__Proto__BaseCommand *c, const struct frame *f,
                       struct slice bytes)
{
    if (on_reply(l, c))
        return;
    switch (c->type) {
    case PULSAR__PROTO__BASE_COMMAND__TYPE__CONNECTED:
        on_connected(l, c->connected);
        break;
    case PULSAR__PROTO__BASE_COMMAND__TYPE__PING:
        pong(l);
        break;
    case PULSAR__PROTO__BASE_COMMAND__TYPE__SEND_RECEIPT:
        to_user(l, USER_PRODUCER, c->send_receipt->producer_id, c, f, bytes);
        break;
    case PULSAR__PROTO__BASE_COMMAND__TYPE__SEND_ERROR:
        to_user(l, USER_PRODUCER, c->send_error->producer_id, c, f, bytes);
        break;
    case PULSAR__PROTO__BASE_COMMAND__TYPE__CLOSE_PRODUCER:
        to_user(l, USER_PRODUCER, c->close_producer->producer_id, c, f, bytes);
        break;
    case PULSAR__PROTO__BASE_COMMAND__TYPE__MESSAGE:
        to_user(l, USER_CONSUMER, c->message->consumer_id, c, f, bytes);
        break;
    case PULSAR__PROTO__BASE_COMMAND__TYPE__CLOSE_CONSUMER:
        to_user(l, USER_CONSUMER, c->close_consumer->consumer_id, c, f, bytes);
        break;
    default: /* PONG and what newer brokers may add */
        break;
    }
}

/* An ERROR before CONNECTED answers the CONNECT: nobody waits for its request id. */
static bool refused(struct link *l, const Pulsar__Proto__BaseCommand *c)
{
    if (l->state != LINK_GREETING || c->type != PULSAR__PROTO__BASE_COMMAND__TYPE__ERROR)
        return false;
    link_break(l, c->error->message);
    return true;
}

static void on_frame(void *ctx, struct slice bytes)
{
    struct link *l = ctx;
    struct frame f;
    Pulsar__Proto__BaseCommand *c;

    l->heard = true;
    enum err err = frame_split(slice_view(bytes), &f);
    if (!err)
        err = command_read(f.command, l->arena, &c);
    if (err)
        link_break(l, err_text(err));
    else if (!refused(l, c)) {
        /* The arena goes on living when a command ends its link: take it aside. */
        struct arena *arena = l->arena;
        l->arena = NULL;
        struct link_env *env = l->env;
        on_command(l, c, &f, bytes);
        bool alive = false;
        list_each(&env->links, node) alive |= list_entry(node, struct link, node) == l;
        arena_reset(arena);
        if (alive)
            l->arena = arena;
        else
            arena_drop(&arena);
    }
    slice_drop(&bytes);
}

/* ---- the start of a link --------------------------------------------------------------------- */

static void on_opened(void *ctx)
{
    struct link *l = ctx;
    Pulsar__Proto__BaseCommand base = PULSAR__PROTO__BASE_COMMAND__INIT;
    Pulsar__Proto__CommandConnect connect = PULSAR__PROTO__COMMAND_CONNECT__INIT;
    base.type = PULSAR__PROTO__BASE_COMMAND__TYPE__CONNECT;
    base.connect = &connect;
    connect.client_version = (char *)(uintptr_t) "LGM-" LGM_VERSION;
    connect.has_protocol_version = true;
    connect.protocol_version = PROTOCOL_VERSION;
    link_send(l, command_frame(&base));
}

static void on_closed(void *ctx, enum err why)
{
    struct link *l = ctx;
    l->conn = NULL;
    link_end(l, why);
}

/* Silence over a whole interval, though a ping asked for an answer: the broker is gone. */
static void keep_alive(struct timer *t)
{
    struct link *l = container_of(t, struct link, keep_alive);
    if (!l->heard) {
        link_break(l, "no answer to a ping");
        return;
    }
    l->heard = false;
    Pulsar__Proto__BaseCommand base = PULSAR__PROTO__BASE_COMMAND__INIT;
    Pulsar__Proto__CommandPing ping = PULSAR__PROTO__COMMAND_PING__INIT;
    base.type = PULSAR__PROTO__BASE_COMMAND__TYPE__PING;
    base.ping = &ping;
    if (l->state == LINK_READY)
        link_send(l, command_frame(&base));
    loop_after(l->env->home, t, KEEP_ALIVE_US);
}

static const struct conn_handler handler = {
    .opened = on_opened, .frame = on_frame, .closed = on_closed};

static struct link *dial(struct link_env *e, const char *host, uint16_t port)
{
    struct link *l = mem_new(struct link);
    const struct conn_conf conf = {.frame_max = FRAME_LIMIT,
                                   .write_high = WRITE_HIGH,
                                   .tls = e->tls,
                                   .tls_name = e->tls ? host : NULL,
                                   .dial_timeout_us = e->timeout_us};
    l->env = e;
    l->host = mem_string(host);
    l->port = port;
    l->arena = arena_new(COMMAND_ARENA);
    l->max_message = MAX_MESSAGE_SIZE;
    l->heard = true;
    list_init(&l->users);
    list_init(&l->requests);
    list_push_back(&e->links, &l->node);
    l->keep_alive.run = keep_alive;
    loop_after(e->home, &l->keep_alive, KEEP_ALIVE_US);
    l->conn = conn_dial(e->home, host, port, &conf, &handler, l);
    return l;
}

static struct link *find(struct link_env *e, const char *host, uint16_t port)
{
    list_each(&e->links, node)
    {
        struct link *l = list_entry(node, struct link, node);
        if (l->port == port && strcmp(l->host, host) == 0)
            return l;
    }
    return NULL;
}

void link_join(struct link_env *e, const char *host, uint16_t port, struct link_user *u)
{
    struct link *l = find(e, host, port);
    if (!l)
        l = dial(e, host, port);
    u->link = l;
    list_push_back(&l->users, &u->node);
    if (l->state == LINK_READY)
        post_ready(l, u);
}

void link_leave(struct link_user *u)
{
    if (u->link)
        user_off(u);
}
