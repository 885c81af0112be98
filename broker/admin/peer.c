#include "broker/admin/peer.h"

#include <curl/curl.h>
#include <pthread.h>
#include <string.h>

#include "broker/broker.h"
#include "common/mem.h"
#include "common/metric.h"

enum { ANSWER_MAX = 16 * 1024 * 1024 };

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static size_t on_body(char *at, size_t size, size_t n, void *ctx)
{
    struct text *t = ctx;

    if (t->len + size * n > ANSWER_MAX)
        return 0;
    text_add(t, "%.*s", (int)(size * n), at);
    return size * n;
}

static void set_file(CURL *c, CURLoption option, const char *file)
{
    if (*file)
        curl_easy_setopt(c, option, file);
}

/* What the other must be, and who this broker is. */
static void set_tls(CURL *c, const struct broker_conf *conf)
{
    set_file(c, CURLOPT_CAINFO, conf->client_trust_file);
    set_file(c, CURLOPT_SSLCERT, conf->client_cert_file);
    set_file(c, CURLOPT_SSLKEY, conf->client_key_file);
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, conf->tls_insecure ? 0L : 1L);
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, conf->verifies_hosts ? 2L : 0L);
    curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, conf->client_tls ? "https" : "http,https");
}

static CURLcode ask(CURL *c, const struct job *j, struct curl_slist *headers, struct text *answer)
{
    set_tls(c, j->admin->env.conf);
    curl_easy_setopt(c, CURLOPT_URL, j->location);
    curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, j->method);
    curl_easy_setopt(c, CURLOPT_TIMEOUT, (long)WAIT_S);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(c, CURLOPT_MAXREDIRS, 3L);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, answer);
    if (j->body.len > 0) {
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, j->body.base);
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE, (long)j->body.len);
    }
    return curl_easy_perform(c);
}

void peer_ask(struct job *j)
{
    struct text answer = {0};
    long status = 0;

    pthread_once(&once, init);
    CURL *c = curl_easy_init();
    char *type = mem_format("Content-Type: %s", j->content_type);
    struct curl_slist *headers = curl_slist_append(NULL, type);
    CURLcode failed = ask(c, j, headers, &answer);
    curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(c);
    curl_slist_free_all(headers);
    mem_free(type);
    j->status = 0;
    mem_free(j->text);
    j->text = NULL;
    if (failed) {
        job_refuse(j, 503, "the broker that serves %s does not answer: %s", j->path.at[3],
                   curl_easy_strerror(failed));
    } else {
        j->status = (int)status;
        j->type = "application/json";
        j->text = answer.at ? mem_string(answer.at) : NULL;
    }
    text_drop(&answer);
    mem_free(j->location);
    j->location = NULL;
}
