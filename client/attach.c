#include "client/attach.h"

#include <assert.h>
#include <stdio.h>

#include "client/server_error.h"
#include "common/mem.h"
#include "common/rng.h"

enum {
    BACKOFF_FIRST_US = 100 * 1000,
    BACKOFF_MAX_US = 1000 * 1000, /* a broker is back within a second or so */
    REDIRECTS_MAX = 20,
};

#define TO(state) (1u << ATTACH_##state)
static const uint32_t may_become[] = {
    [ATTACH_IDLE] = TO(LOOKUP) | TO(ENDED),
    [ATTACH_LOOKUP] = TO(LOOKUP) | TO(JOINING) | TO(WAITING) | TO(ENDED),
    [ATTACH_JOINING] = TO(OPENING) | TO(WAITING) | TO(ENDED),
    [ATTACH_OPENING] = TO(READY) | TO(WAITING) | TO(ENDED),
    [ATTACH_READY] = TO(WAITING) | TO(ENDED),
    [ATTACH_WAITING] = TO(LOOKUP) | TO(ENDED),
    [ATTACH_ENDED] = 0,
};

static void become(struct attach *a, enum attach_state next)
{
    assert(may_become[a->state] & 1u << next);
    a->state = next;
}

static struct attach *attach_of(struct link_user *u)
{
    return container_of(u, struct attach, user);
}

static void let_go(struct attach *a)
{
    if (a->state == ATTACH_OPENING && a->request.link && a->user.link)
        a->ops->abandon(a, a->user.link);
    link_forget(&a->request);
    link_leave(&a->user);
    loop_cancel(a->env->home, &a->retry);
}

static void fail(struct attach *a, enum err err, const char *text)
{
    let_go(a);
    loop_cancel(a->env->home, &a->give_up);
    become(a, ATTACH_ENDED);
    a->ops->failed(a, err, text);
}

/* Between half and the whole of the step, so that a thousand clients of a broker that died do not
 * come back in step. */
static void wait_and_retry(struct attach *a)
{
    uint64_t seed = loop_clock() ^ (uint64_t)(uintptr_t)a;
    if (a->state == ATTACH_READY && loop_now(a->env->home) - a->ready_us > a->backoff_us)
        a->backoff_us = BACKOFF_FIRST_US;
    uint64_t half = a->backoff_us / 2;
    let_go(a);
    become(a, ATTACH_WAITING);
    loop_after(a->env->home, &a->retry, half + rng_below(&seed, half + 1));
    a->backoff_us = a->backoff_us * 2 > BACKOFF_MAX_US ? BACKOFF_MAX_US : a->backoff_us * 2;
}

/* A broker with too much to do is not asked again for what nobody has yet: whoever started us may
 * decide to. */
static bool ends_it(const struct attach *a, enum err err)
{
    if (a->was_ready)
        return err == ERR_FENCED || err == ERR_TERMINATED || err == ERR_TOPIC_NOT_FOUND;
    return err == ERR_BUSY || !err_is_worth_retrying(err);
}

static void failed_once(struct attach *a, enum err err, const char *text)
{
    a->last_err = err;
    snprintf(a->why, sizeof a->why, "%s", text && *text ? text : err_text(err));
    if (ends_it(a, err))
        fail(a, err, a->why);
    else
        wait_and_retry(a);
}

static void give_up(struct timer *t)
{
    struct attach *a = container_of(t, struct attach, give_up);
    if (a->last_err)
        fail(a, a->last_err, a->why);
    else
        fail(a, ERR_TIMEOUT, "the broker did not answer in time");
}

/* ---- lookup ---------------------------------------------------------------------------------- */

static enum err set_owner(struct attach *a, const char *url, const char *url_tls)
{
    struct service_url owner;
    const char *text = a->service->tls ? url_tls : url;
    if (!text || service_url_parse(text, &owner))
        return ERR_MALFORMED;
    mem_free(a->host);
    a->host = mem_string(owner.at[0].host);
    a->port = owner.at[0].port;
    service_url_drop(&owner);
    return ERR_OK;
}

static void ask_again(struct attach *a)
{
    become(a, ATTACH_LOOKUP);
    link_leave(&a->user);
    link_join(a->env, a->host, a->port, &a->user);
}

static void looked_up(struct link_request *r, enum err err, const char *text,
                      const Pulsar__Proto__BaseCommand *reply)
{
    struct attach *a = container_of(r, struct attach, request);
    if (err) {
        failed_once(a, err, text);
        return;
    }
    const Pulsar__Proto__CommandLookupTopicResponse *l = reply->lookuptopicresponse;
    bool redirect =
        l->response == PULSAR__PROTO__COMMAND_LOOKUP_TOPIC_RESPONSE__LOOKUP_TYPE__Redirect;
    a->authoritative = l->authoritative;
    if ((redirect || !l->proxy_through_service_url) &&
        set_owner(a, l->brokerserviceurl, l->brokerserviceurltls)) {
        failed_once(a, ERR_NOT_READY, "the lookup answer names no broker that can be reached");
    } else if (redirect && ++a->redirects > REDIRECTS_MAX) {
        failed_once(a, ERR_NOT_READY, "sent from broker to broker without end");
    } else if (redirect) {
        ask_again(a);
    } else {
        become(a, ATTACH_JOINING);
        link_leave(&a->user);
        link_join(a->env, a->host, a->port, &a->user);
    }
}

static void look_up(struct attach *a)
{
    Pulsar__Proto__BaseCommand base = PULSAR__PROTO__BASE_COMMAND__INIT;
    Pulsar__Proto__CommandLookupTopic lookup = PULSAR__PROTO__COMMAND_LOOKUP_TOPIC__INIT;
    base.type = PULSAR__PROTO__BASE_COMMAND__TYPE__LOOKUP;
    base.lookuptopic = &lookup;
    lookup.topic = (char *)(uintptr_t)a->topic;
    lookup.request_id = link_next_request(a->env);
    lookup.has_authoritative = true;
    lookup.authoritative = a->authoritative;
    a->request.done = looked_up;
    link_call(a->user.link, &base, lookup.request_id, &a->request);
}

static void begin(struct attach *a)
{
    unsigned host = a->next_host++ % a->service->n;
    become(a, ATTACH_LOOKUP);
    a->redirects = 0;
    a->authoritative = false;
    mem_free(a->host);
    a->host = mem_string(a->service->at[host].host);
    a->port = a->service->at[host].port;
    link_join(a->env, a->host, a->port, &a->user);
}

static void retry(struct timer *t)
{
    begin(container_of(t, struct attach, retry));
}

/* ---- opening --------------------------------------------------------------------------------- */

static void opened(struct link_request *r, enum err err, const char *text,
                   const Pulsar__Proto__BaseCommand *reply)
{
    struct attach *a = container_of(r, struct attach, request);
    if (err == ERR_TIMEOUT && !reply)
        a->ops->abandon(a, a->user.link);
    if (err) {
        failed_once(a, err, text);
        return;
    }
    become(a, ATTACH_READY);
    a->was_ready = true;
    a->ready_us = loop_now(a->env->home);
    loop_cancel(a->env->home, &a->give_up);
    a->ops->opened(a, reply);
}

static void on_ready(struct link_user *u)
{
    struct attach *a = attach_of(u);
    if (a->state == ATTACH_LOOKUP && !a->request.link) {
        look_up(a);
    } else if (a->state == ATTACH_JOINING) {
        become(a, ATTACH_OPENING);
        a->request.done = opened;
        a->ops->open(a, link_next_request(a->env));
    }
}

static void on_command(struct link_user *u, const Pulsar__Proto__BaseCommand *cmd,
                       const struct frame *f, struct slice bytes)
{
    struct attach *a = attach_of(u);
    if (a->state == ATTACH_READY)
        a->ops->command(a, cmd, f, bytes);
}

static void on_lost(struct link_user *u, const char *why)
{
    struct attach *a = attach_of(u);
    if (a->state == ATTACH_READY)
        attach_again(a);
    else
        failed_once(a, ERR_CLOSED, why);
}

static const struct link_user_ops user_ops = {
    .ready = on_ready, .command = on_command, .lost = on_lost};

void attach_start(struct attach *a, const struct attach_ops *ops, struct link_env *env,
                  const struct service_url *service, const char *topic, enum user_kind kind,
                  uint64_t user_id)
{
    *a = (struct attach){.ops = ops, .env = env, .service = service, .topic = topic};
    a->user.ops = &user_ops;
    a->user.kind = kind;
    a->user.id = user_id;
    a->retry.run = retry;
    a->backoff_us = BACKOFF_FIRST_US;
    a->give_up.run = give_up;
    loop_after(env->home, &a->give_up, env->timeout_us);
    begin(a);
}

void attach_again(struct attach *a)
{
    if (a->state != ATTACH_READY)
        return;
    wait_and_retry(a);
    a->ops->lost(a);
}

void attach_out_of_step(struct attach *a, const char *why)
{
    if (attach_link(a))
        link_break(a->user.link, why);
}

void attach_end(struct attach *a)
{
    if (a->state != ATTACH_ENDED) {
        let_go(a);
        loop_cancel(a->env->home, &a->give_up);
        become(a, ATTACH_ENDED);
    }
    mem_free(a->host);
    a->host = NULL;
}
