#include "client/link.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "client/server_error.h"
#include "common/log.h"
#include "common/mem.h"

enum {
    PROTOCOL_VERSION = 21,
    GREETING_US = 10 * 1000 * 1000, /* to connect, and again to be greeted */
    COMMAND_ARENA = 16 * 1024 * 1024,
    FRAME_LIMIT = 64 * 1024 * 1024 + FRAME_PADDING, /* a broker may allow messages of 64 MiB */
    MAX_MESSAGE_LEAST = 1024,                       /* less is nonsense */
    PONG_BEHIND_MAX = 1024 * 1024,
};

struct link {
    struct link_env *env;
    enum { LINK_DIALLING, LINK_GREETING, LINK_READY, LINK_ENDED } state;
    bool handling; /* a frame: whoever ends it then leaves the rest to on_frame() */
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

void link_env_init(struct link_env *e, struct loop *home, struct tls *tls, uint64_t timeout_us,
                   uint64_t keep_alive_us)
{
    *e = (struct link_env){
        .home = home, .tls = tls, .timeout_us = timeout_us, .keep_alive_us = keep_alive_us};
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

/* While a link tells its users of its end, one of them may still write to it. */
void link_send(struct link *l, struct slice frame)
{
    if (l->state == LINK_ENDED)
        slice_drop(&frame);
    else
        conn_send(l->conn, frame);
}

void link_send_chain(struct link *l, struct chain *c)
{
    if (l->state == LINK_ENDED)
        chain_drop(c);
    else
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

static int reply_to(Pulsar__Proto__BaseCommand__Type command)
{
    switch (command) {
    case PULSAR__PROTO__BASE_COMMAND__TYPE__LOOKUP:
        return PULSAR__PROTO__BASE_COMMAND__TYPE__LOOKUP_RESPONSE;
    case PULSAR__PROTO__BASE_COMMAND__TYPE__PARTITIONED_METADATA:
        return PULSAR__PROTO__BASE_COMMAND__TYPE__PARTITIONED_METADATA_RESPONSE;
    case PULSAR__PROTO__BASE_COMMAND__TYPE__PRODUCER:
        return PULSAR__PROTO__BASE_COMMAND__TYPE__PRODUCER_SUCCESS;
    case PULSAR__PROTO__BASE_COMMAND__TYPE__ACK:
        return PULSAR__PROTO__BASE_COMMAND__TYPE__ACK_RESPONSE;
    default:
        return PULSAR__PROTO__BASE_COMMAND__TYPE__SUCCESS;
    }
}

void link_call(struct link *l, const Pulsar__Proto__BaseCommand *cmd, uint64_t id,
               struct link_request *r)
{
    assert(!r->link);
    r->id = id;
    r->reply_type = reply_to(cmd->type);
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
        if (!err && (int)reply->type != r->reply_type) {
            link_break(l, "an answer of another kind than its question");
            return;
        }
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
    arena_drop(&l->arena);
    mem_free(l->host);
    mem_free(l);
}

static void link_off(struct link *l)
{
    l->state = LINK_ENDED;
    loop_cancel(l->env->home, &l->keep_alive);
    list_remove(&l->node);
}

/* Whoever is told may join another link, to the same broker too: this one is out of the list
 * first.  Users come before requests, so that nobody who hears of a failed request believes to be
 * attached still. */
static void link_end(struct link *l, const char *why)
{
    link_off(l);
    struct list_node *node;
    while ((node = list_pop_front(&l->users))) {
        struct link_user *u = list_entry(node, struct link_user, node);
        user_off(u);
        u->ops->lost(u, why);
    }
    while ((node = list_pop_front(&l->requests))) {
        struct link_request *r = list_entry(node, struct link_request, node);
        request_end(r);
        r->done(r, ERR_CLOSED, why, NULL);
    }
    if (!l->handling)
        link_free(l);
}

void link_break(struct link *l, const char *why)
{
    if (l->state == LINK_ENDED)
        return;
    log_event(LOG_WARN, "client.link_broken", F_STR("peer", conn_peer(l->conn)),
              F_STR("reason", why));
    conn_close(&l->conn);
    link_end(l, why);
}

static void link_finish(struct link *l)
{
    link_off(l);
    conn_finish(&l->conn);
    if (!l->handling)
        link_free(l);
}

void link_env_close(struct link_env *e)
{
    list_each(&e->links, node) link_finish(list_entry(node, struct link, node));
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
    if (c->has_max_message_size && c->max_message_size >= MAX_MESSAGE_LEAST)
        l->max_message = (size_t)c->max_message_size;
    loop_after(l->env->home, &l->keep_alive, l->env->keep_alive_us);
    list_each(&l->users, node) post_ready(l, list_entry(node, struct link_user, node));
}

static struct link_user *user_of(struct link *l, enum user_kind kind, uint64_t id)
{
    list_each(&l->users, node)
    {
        struct link_user *u = list_entry(node, struct link_user, node);
        if (u->kind == kind && u->id == id)
            return u;
    }
    return NULL;
}

static void to_user(struct link *l, enum user_kind kind, uint64_t id,
                    const Pulsar__Proto__BaseCommand *cmd, const struct frame *f,
                    struct slice bytes)
{
    struct link_user *u = user_of(l, kind, id);
    if (u)
        u->ops->command(u, cmd, f, bytes);
}

/* What waits to be written tells the broker as well that we live: a peer that pings and does not
 * read makes nothing grow. */
static void pong(struct link *l)
{
    if (conn_waiting(l->conn) > PONG_BEHIND_MAX)
        return;
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
    case PULSAR__PROTO__BASE_COMMAND__TYPE__PARTITIONED_METADATA_RESPONSE:
        answer(l, c->partitionmetadataresponse->request_id,
               c->partitionmetadataresponse->has_error
                   ? server_error_to_err((int)c->partitionmetadataresponse->error)
                   : ERR_OK,
               c->partitionmetadataresponse->message, c);
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

/* Before CONNECTED nothing else is welcome; an ERROR then answers the CONNECT. */
static void on_greeting(struct link *l, const Pulsar__Proto__BaseCommand *c)
{
    if (c->type == PULSAR__PROTO__BASE_COMMAND__TYPE__CONNECTED)
        on_connected(l, c->connected);
    else if (c->type == PULSAR__PROTO__BASE_COMMAND__TYPE__ERROR)
        link_break(l, c->error->message);
    else
        link_break(l, "the broker did not greet");
}

static void on_frame(void *ctx, struct slice bytes)
{
    struct link *l = ctx;
    struct frame f;
    Pulsar__Proto__BaseCommand *c;

    l->heard = l->handling = true;
    enum err err = frame_split(slice_view(bytes), &f);
    if (!err)
        err = command_read(f.command, l->arena, &c);
    if (err)
        link_break(l, err_text(err));
    else if (l->state == LINK_GREETING)
        on_greeting(l, c);
    else
        on_command(l, c, &f, bytes);
    l->handling = false;
    arena_reset(l->arena);
    slice_drop(&bytes);
    if (l->state == LINK_ENDED)
        link_free(l);
}

/* ---- the start of a link --------------------------------------------------------------------- */

/* Less than an operation may take, so that the next host of the url gets its turn. */
static uint64_t greeting_us(const struct link_env *e)
{
    return e->timeout_us < GREETING_US ? e->timeout_us : GREETING_US;
}

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
    l->state = LINK_GREETING;
    loop_after(l->env->home, &l->keep_alive, greeting_us(l->env));
    link_send(l, command_frame(&base));
}

static void on_closed(void *ctx, enum err why)
{
    struct link *l = ctx;
    char text[400];
    const char *what = l->state == LINK_DIALLING   ? "cannot be reached"
                       : l->state == LINK_GREETING ? "closed the connection before it greeted"
                                                   : "closed the connection";
    if (why == ERR_CLOSED)
        snprintf(text, sizeof text, "%s:%u %s", l->host, l->port, what);
    else
        snprintf(text, sizeof text, "%s:%u %s (%s)", l->host, l->port, what, err_text(why));
    l->conn = NULL;
    link_end(l, text);
}

static void ping(struct link *l)
{
    Pulsar__Proto__BaseCommand base = PULSAR__PROTO__BASE_COMMAND__INIT;
    Pulsar__Proto__CommandPing ping = PULSAR__PROTO__COMMAND_PING__INIT;
    base.type = PULSAR__PROTO__BASE_COMMAND__TYPE__PING;
    base.ping = &ping;
    link_send(l, command_frame(&base));
}

/* Silence over a whole interval, though a ping asked for an answer: the broker is gone. */
static void keep_alive(struct timer *t)
{
    struct link *l = container_of(t, struct link, keep_alive);
    if (l->state != LINK_READY) {
        link_break(l, "the broker did not greet in time");
    } else if (!l->heard) {
        link_break(l, "the broker does not answer a ping");
    } else if (list_empty(&l->users) && list_empty(&l->requests)) {
        link_finish(l);
    } else {
        l->heard = false;
        ping(l);
        loop_after(l->env->home, t, l->env->keep_alive_us);
    }
}

static const struct conn_handler handler = {
    .opened = on_opened, .frame = on_frame, .closed = on_closed};

static struct link *dial(struct link_env *e, const char *host, uint16_t port)
{
    struct link *l = mem_new(struct link);
    const struct conn_conf conf = {.frame_max = FRAME_LIMIT,
                                   .tls = e->tls,
                                   .tls_name = e->tls ? host : NULL,
                                   .dial_timeout_us = greeting_us(e)};
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
