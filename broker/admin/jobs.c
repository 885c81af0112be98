#include "broker/admin/jobs.h"

#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "broker/admin/peer.h"
#include "broker/broker.h"
#include "common/mem.h"

struct clerks {
    pthread_mutex_t mutex;
    pthread_cond_t work;
    struct list_node queue;
    unsigned waiting;
    bool closing;
    pthread_t thread[CLERKS];
};

/* ---- what was asked ---- */

static char *query_value(const char *from)
{
    char *raw = mem_string_n(from, strcspn(from, "&"));

    for (char *c = raw; *c; c++)
        if (*c == '+')
            *c = ' ';
    char *decoded = http_decode(raw);
    mem_free(raw);
    return decoded;
}

const char *job_query(struct job *j, const char *key)
{
    const char *at = strchr(j->target, '?');
    size_t len = strlen(key);

    mem_free(j->found);
    j->found = NULL;
    for (at = at ? at + 1 : ""; *at; at += *at == '&') {
        if (strncmp(at, key, len) == 0 && (at[len] == '=' || at[len] == '&' || !at[len])) {
            j->found = at[len] == '=' ? query_value(at + len + 1) : mem_string("");
            return j->found;
        }
        at += strcspn(at, "&");
    }
    return NULL;
}

bool job_flag(struct job *j, const char *key)
{
    const char *value = job_query(j, key);

    return value && strcmp(value, "true") == 0;
}

json_object *job_json(struct job *j)
{
    json_tokener *t = json_tokener_new();
    json_object *o = NULL;

    if (j->body.len > 0) {
        o = json_tokener_parse_ex(t, (const char *)j->body.base, (int)j->body.len);
        if (!o && json_tokener_get_error(t) == json_tokener_continue)
            o = json_tokener_parse_ex(t, " ", 1); /* a number ends with what follows it */
        if (json_tokener_get_error(t) != json_tokener_success)
            job_refuse(j, 400, "the body is no JSON: %s",
                       json_tokener_error_desc(json_tokener_get_error(t)));
    }
    json_tokener_free(t);
    return o;
}

/* ---- the answer ---- */

static void say(struct job *j, int status, const char *type, char *text)
{
    if (j->status) {
        mem_free(text);
        return;
    }
    j->status = status;
    j->type = type;
    j->text = text;
}

void job_done(struct job *j)
{
    say(j, 204, NULL, NULL);
}

void job_text(struct job *j, int status, const char *text)
{
    say(j, status, "text/plain; charset=utf-8", mem_string(text));
}

static char *text_of(json_object *o)
{
    return mem_string(
        json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
}

void job_json_reply(struct job *j, json_object *o)
{
    if (!o) {
        job_done(j);
        return;
    }
    say(j, 200, "application/json", text_of(o));
    json_object_put(o);
}

void job_bytes(struct job *j, struct slice bytes, json_object *headers)
{
    say(j, 200, "application/octet-stream", NULL);
    j->bytes = bytes;
    j->headers = headers;
}

void job_refuse(struct job *j, int status, const char *fmt, ...)
{
    json_object *o = json_object_new_object();
    char reason[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(reason, sizeof(reason), fmt, args);
    va_end(args);
    json_object_object_add(o, "reason", json_object_new_string(reason));
    say(j, status, "application/json", text_of(o));
    json_object_put(o);
}

static int status_of(enum err err)
{
    switch (err) {
    case ERR_TOPIC_NOT_FOUND:
    case ERR_SUBSCRIPTION_NOT_FOUND:
    case ERR_NOT_FOUND:
        return 404;
    case ERR_EXISTS:
    case ERR_BAD_VERSION:
        return 409;
    case ERR_BUSY:
    case ERR_INVALID_NAME:
        return 412;
    case ERR_NOT_ALLOWED:
    case ERR_TERMINATED:
        return 405;
    default:
        return err_class(err) == CLASS_RETRY ? 503 : 500;
    }
}

void job_fail(struct job *j, enum err err, const char *what)
{
    job_refuse(j, status_of(err), "%s", what ? what : err_text(err));
}

/* ---- in pieces ---- */

static void was_taken(void *ctx, bool gone)
{
    struct job *j = ctx;

    j->gone = gone;
    sem_post(&j->taken);
}

static void give_chunk(struct task *t)
{
    struct job *j = container_of(t, struct job, task);

    if (!j->begun) {
        http_reply_begin(j->request, 200, "application/json", was_taken, j);
        j->begun = true;
    }
    http_reply_chunk(j->request, j->chunk);
}

bool job_chunk(struct job *j, const char *text, size_t len)
{
    j->status = 200;
    if (len == 0 || j->gone)
        return !j->gone;
    j->chunk = view_of(text, len);
    j->task.run = give_chunk;
    loop_post(j->admin->env.home, &j->task);
    while (sem_wait(&j->taken))
        ;
    return !j->gone;
}

/* ---- life of a job ---- */

static struct job *job_new(struct admin *a, job_fn *run)
{
    struct job *j = mem_new(struct job);

    j->admin = a;
    j->run = run;
    list_init(&j->node);
    sem_init(&j->taken, 0, 0);
    return j;
}

void job_drop(struct job **jp)
{
    struct job *j = *jp;

    *jp = NULL;
    route_segments_drop(&j->path);
    slice_drop(&j->body);
    mem_free(j->target);
    mem_free(j->content_type);
    mem_free(j->listener);
    mem_free(j->found);
    mem_free(j->text);
    mem_free(j->location);
    slice_drop(&j->bytes);
    json_object_put(j->headers);
    sem_destroy(&j->taken);
    mem_free(j);
}

static struct view body_of(const struct job *j)
{
    return j->text ? view_of(j->text, strlen(j->text)) : slice_view(j->bytes);
}

static void add_headers(const struct job *j)
{
    if (!j->headers)
        return;
    json_object_object_foreach(j->headers, name, value)
        http_add_header(j->request, name, json_object_get_string(value));
}

static void reply(struct task *t)
{
    struct job *j = container_of(t, struct job, task);
    struct admin *a = j->admin;

    add_headers(j);
    if (j->location)
        http_add_header(j->request, "Location", j->location);
    if (j->begun)
        http_reply_end(j->request);
    else
        http_reply(j->request, j->status, j->type, body_of(j));
    job_drop(&j);
    admin_lets_go(a);
}

static void walk(struct job *j)
{
    j->run(j);
    if (!j->status)
        job_refuse(j, 500, "there is no answer");
}

/* "/admin/v2/persistent/t/ns/topic...": for a broker that is asked for the partition. */
static char *target_of_part(const struct job *whole, const char *suffix)
{
    const char *at = whole->target;

    for (unsigned slashes = 0; *at && slashes < 6; at++)
        slashes += *at == '/';
    at += strcspn(at, "/?");
    return mem_format("%.*s%s%s", (int)(at - whole->target), whole->target, suffix, at);
}

struct job *job_part(struct job *whole, int32_t partition)
{
    char suffix[32];
    struct job *j = job_new(whole->admin, whole->run);

    assert(whole->path.n >= 4);
    snprintf(suffix, sizeof(suffix), "-partition-%d", partition);
    j->method = whole->method;
    for (j->path.n = 0; j->path.n < whole->path.n; j->path.n++)
        j->path.at[j->path.n] =
            mem_format("%s%s", whole->path.at[j->path.n], j->path.n == 3 ? suffix : "");
    j->target = target_of_part(whole, suffix);
    j->body = slice_share(whole->body);
    j->content_type = mem_string(whole->content_type);
    j->listener = mem_string(whole->listener);
    j->secure = whole->admin->env.conf->client_tls;
    walk(j);
    if (j->status == 307)
        peer_ask(j);
    return j;
}

void job_becomes(struct job *j, job_fn *run, const char *from, const char *to)
{
    char *end = strstr(j->target, from);

    j->run = run;
    if (!end)
        return;
    char *target =
        mem_format("%.*s%s%s", (int)(end - j->target), j->target, to, end + strlen(from));
    mem_free(j->target);
    j->target = target;
}

/* ---- clerks ---- */

static struct job *next_job(struct clerks *c)
{
    struct list_node *n;

    pthread_mutex_lock(&c->mutex);
    while (!(n = list_pop_front(&c->queue)) && !c->closing)
        pthread_cond_wait(&c->work, &c->mutex);
    c->waiting -= n != NULL;
    pthread_mutex_unlock(&c->mutex);
    return n ? list_entry(n, struct job, node) : NULL;
}

static void *clerk(void *ctx)
{
    struct clerks *c = ctx;

    for (struct job *j; (j = next_job(c));) {
        walk(j);
        j->task.run = reply;
        loop_post(j->admin->env.home, &j->task);
    }
    return NULL;
}

struct clerks *clerks_open(struct admin *a)
{
    struct clerks *c = mem_new(struct clerks);

    (void)a;
    list_init(&c->queue);
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->work, NULL);
    for (unsigned i = 0; i < CLERKS; i++) {
        int failed = pthread_create(&c->thread[i], NULL, clerk, c);
        assert(!failed);
        (void)failed;
        pthread_setname_np(c->thread[i], "clerk");
    }
    return c;
}

void clerks_close(struct clerks **cp)
{
    struct clerks *c = *cp;

    *cp = NULL;
    pthread_mutex_lock(&c->mutex);
    c->closing = true;
    pthread_cond_broadcast(&c->work);
    pthread_mutex_unlock(&c->mutex);
    for (unsigned i = 0; i < CLERKS; i++)
        pthread_join(c->thread[i], NULL);
    pthread_cond_destroy(&c->work);
    pthread_mutex_destroy(&c->mutex);
    mem_free(c);
}

static bool enqueue(struct clerks *c, struct job *j)
{
    pthread_mutex_lock(&c->mutex);
    bool room = c->waiting < JOBS_MAX;
    if (room) {
        list_push_back(&c->queue, &j->node);
        c->waiting++;
        pthread_cond_signal(&c->work);
    }
    pthread_mutex_unlock(&c->mutex);
    return room;
}

static char *header(struct http_request *r, const char *name)
{
    const char *value = http_header(r, name);

    return mem_string(value ? value : "");
}

void jobs_take(struct admin *a, struct http_request *r, const char *method, job_fn *run,
               struct segments_of_path *p)
{
    struct job *j = job_new(a, run);
    struct view body = http_body(r);

    j->request = r;
    j->method = method;
    j->path = *p;
    *p = (struct segments_of_path){0};
    j->target = mem_string(http_target(r));
    j->body = slice_copy(body.base, body.len);
    j->content_type = header(r, "Content-Type");
    j->listener = header(r, "X-Pulsar-ListenerName");
    j->secure = http_came_by_tls(r);
    admin_holds(a);
    if (enqueue(a->clerks, j))
        return;
    job_refuse(j, 503, "too many requests are waiting");
    reply(&j->task);
}
