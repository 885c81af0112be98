/* How many partitions does a topic have?  Any broker knows: asked until one answers. */
#include "client/client_private.h"
#include "client/server_error.h"
#include "common/mem.h"

enum { AGAIN_US = 200 * 1000, PARTITIONS_MAX = 100000 };

struct partitions_ask {
    struct client *client;
    char *topic;
    void (*done)(void *ctx, enum err err, const char *text, unsigned partitions);
    void *ctx;
    struct list_node node; /* in client->asks */
    struct link_user user;
    struct link_request request;
    struct timer again, give_up;
    unsigned next_host;
    struct task free_task;
};

static void free_it(struct task *t)
{
    struct partitions_ask *a = container_of(t, struct partitions_ask, free_task);

    mem_free(a->topic);
    mem_free(a);
}

/* Freed a round later: its link may be in the middle of telling it something. */
static void end(struct partitions_ask *a, enum err err, const char *text, unsigned partitions)
{
    struct loop *home = a->client->home;

    link_forget(&a->request);
    link_leave(&a->user);
    loop_cancel(home, &a->again);
    loop_cancel(home, &a->give_up);
    list_remove(&a->node);
    a->done(a->ctx, err, text, partitions);
    a->free_task.run = free_it;
    loop_post(home, &a->free_task);
}

static void begin(struct partitions_ask *a)
{
    const struct service_url *service = &a->client->service;
    const unsigned host = a->next_host++ % service->n;

    link_join(&a->client->links, service->at[host].host, service->at[host].port, &a->user);
}

static void again(struct timer *t)
{
    begin(container_of(t, struct partitions_ask, again));
}

static void try_again(struct partitions_ask *a)
{
    link_forget(&a->request);
    link_leave(&a->user);
    loop_after(a->client->home, &a->again, AGAIN_US);
}

static void give_up(struct timer *t)
{
    end(container_of(t, struct partitions_ask, give_up), ERR_TIMEOUT, "no broker answered in time",
        0);
}

/* A broker with too much to do is not asked again, as attach.c does not. */
static bool may_mend(enum err err)
{
    return err != ERR_BUSY && err_is_worth_retrying(err);
}

static void answered(struct link_request *r, enum err err, const char *text,
                     const Pulsar__Proto__BaseCommand *reply)
{
    struct partitions_ask *a = container_of(r, struct partitions_ask, request);
    const unsigned n = err ? 0 : reply->partitionmetadataresponse->partitions;

    if (err && may_mend(err))
        try_again(a);
    else if (n > PARTITIONS_MAX)
        end(a, ERR_MALFORMED, "more partitions than there may be", 0);
    else
        end(a, err, text, n);
}

static void on_ready(struct link_user *u)
{
    struct partitions_ask *a = container_of(u, struct partitions_ask, user);
    Pulsar__Proto__BaseCommand base = PULSAR__PROTO__BASE_COMMAND__INIT;
    Pulsar__Proto__CommandPartitionedTopicMetadata ask =
        PULSAR__PROTO__COMMAND_PARTITIONED_TOPIC_METADATA__INIT;

    base.type = PULSAR__PROTO__BASE_COMMAND__TYPE__PARTITIONED_METADATA;
    base.partitionmetadata = &ask;
    ask.topic = a->topic;
    ask.request_id = link_next_request(&a->client->links);
    a->request.done = answered;
    link_call(u->link, &base, ask.request_id, &a->request);
}

static void on_command(struct link_user *u, const Pulsar__Proto__BaseCommand *cmd,
                       const struct frame *f, struct slice bytes)
{
    (void)u, (void)cmd, (void)f, (void)bytes;
}

static void on_lost(struct link_user *u, const char *why)
{
    (void)why;
    try_again(container_of(u, struct partitions_ask, user));
}

static const struct link_user_ops user_ops = {
    .ready = on_ready, .command = on_command, .lost = on_lost};

void client_partitions(struct client *c, const char *topic,
                       void (*done)(void *ctx, enum err err, const char *text, unsigned partitions),
                       void *ctx)
{
    struct partitions_ask *a = mem_new(struct partitions_ask);

    *a = (struct partitions_ask){.client = c, .topic = mem_string(topic), .done = done, .ctx = ctx};
    a->user.ops = &user_ops;
    a->user.kind = USER_ASKER;
    a->again.run = again;
    a->give_up.run = give_up;
    list_push_back(&c->asks, &a->node);
    loop_after(c->home, &a->give_up, c->links.timeout_us);
    begin(a);
}

void partitions_end(struct client *c)
{
    while (!list_empty(&c->asks))
        end(list_entry(c->asks.next, struct partitions_ask, node), ERR_CLOSED, NULL, 0);
}
