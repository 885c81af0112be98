/* jobs.h - requests that take many steps: a clerk walks through each, and may wait.
 *
 *   loop    request --> job (all that was asked, copied) --> queue
 *   clerk   handler: asks.h, visits.h wait for metadata and topics; says the answer
 *   loop    <-- posted back: http_reply
 *
 * Nothing hot passes here.  What the administrators' requests need (several facts read in a row,
 * a compare-and-set that is tried again, a topic on another loop, each partition of it) reads
 * from top to bottom this way, in a thread that owns nothing and may wait.
 *
 * Memory:  a job owns what it holds; queries and segments are borrowed from it.
 * Threads: a handler runs on a clerk; jobs_take() on the admin's loop.
 * Limits:  CLERKS threads; JOBS_MAX jobs wait, then 503.  A wait ends after WAIT_S: 503.
 */
#ifndef BROKER_ADMIN_JOBS_H
#define BROKER_ADMIN_JOBS_H

#include <json-c/json.h>
#include <semaphore.h>

#include "broker/admin/routes.h"
#include "common/list.h"

enum { CLERKS = 4, JOBS_MAX = 256, WAIT_S = 30 };

struct job;
typedef void job_fn(struct job *j);

struct job {
    struct admin *admin;
    job_fn *run;
    const char *method;
    struct segments_of_path path;
    char *target; /* path and query as sent */
    struct slice body;
    char *content_type, *listener; /* headers; "" */
    char *found;                   /* of job_query() */
    bool secure;                   /* by HTTPS; another broker is asked by nothing less */

    int status; /* of the answer; 0: none yet */
    const char *type;
    char *text, *location;
    struct slice bytes;   /* instead of text */
    json_object *headers; /* name: text; NULL: none */

    struct http_request *request; /* the loop's, as the rest; NULL: a part of another job */
    struct list_node node;
    struct task task;
    bool begun, gone; /* an answer in chunks */
    struct view chunk;
    sem_t taken;
};

#define X(method, path, handler, action) job_fn handler;
#include "broker/admin/jobs.def"
#undef X

/* ---- what was asked ---- */

const char *job_query(struct job *j, const char *key); /* decoded, until the next; NULL: absent */
bool job_flag(struct job *j, const char *key);         /* "true" */
/* Gives; NULL when there is none, or none that can be read: then it was answered with 400 */
json_object *job_json(struct job *j);

/* ---- the answer: one of these, once ---- */

void job_done(struct job *j); /* 204 */
void job_text(struct job *j, int status, const char *text);
void job_json_reply(struct job *j, json_object *o); /* takes o; NULL: 204 */
/* 200; takes the bytes, and the headers: name: text. */
void job_bytes(struct job *j, struct slice bytes, json_object *headers);
void job_refuse(struct job *j, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void job_fail(struct job *j, enum err err, const char *what); /* the status that fits err */
/* What it may not be answered at once: 200, in pieces.  false: nobody listens any more. */
bool job_chunk(struct job *j, const char *text, size_t len);

/* ---- parts of a job: the same handler for a partition of its topic ---- */

struct job *job_part(struct job *whole, int32_t partition); /* gives, answered */
/* From now on it is another route: the end of its path, and who takes it. */
void job_becomes(struct job *j, job_fn *run, const char *from, const char *to);
void job_drop(struct job **j);

/* ---- for admin.c ---- */

struct clerks *clerks_open(struct admin *a); /* gives */
void clerks_close(struct clerks **c);        /* no job is under way */
/* Copies what the request holds and answers it later; takes the segments. */
void jobs_take(struct admin *a, struct http_request *r, const char *method, job_fn *run,
               struct segments_of_path *p);

#endif
