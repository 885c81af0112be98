/* One request, one answer. */
#include <curl/curl.h>
#include <string.h>

#include "cli/admin_verbs.h"
#include "common/mem.h"

enum { TIMEOUT_S = 120, REDIRECTS = 5 };

static size_t on_body(char *at, size_t size, size_t n, void *ctx)
{
    text_add(ctx, "%.*s", (int)(size * n), at);
    return size * n;
}

static void set_tls(CURL *curl, const struct admin_call *c)
{
    if (c->trust)
        curl_easy_setopt(curl, CURLOPT_CAINFO, c->trust);
    if (c->cert)
        curl_easy_setopt(curl, CURLOPT_SSLCERT, c->cert);
    if (c->key)
        curl_easy_setopt(curl, CURLOPT_SSLKEY, c->key);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, c->insecure ? 0L : 1L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, c->insecure ? 0L : 2L);
    if (strncmp(c->url, "https:", 6) == 0)
        curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "https");
}

static CURLcode ask(CURL *curl, const struct admin_call *c, const char *url, const char *body,
                    struct text *answer)
{
    set_tls(curl, c);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, c->verb->method);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)TIMEOUT_S);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, (long)REDIRECTS);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    if (body)
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    return curl_easy_perform(curl);
}

long admin_http(const struct admin_call *c, const char *target, const char *body,
                struct text *answer)
{
    size_t len = strlen(c->url);
    long status = 0;

    while (len > 0 && c->url[len - 1] == '/')
        len--;
    char *url = mem_format("%.*s%s", (int)len, c->url, target);
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    CURLcode failed = ask(curl, c, url, body, answer);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (failed) {
        admin_say("%s: %s", url, curl_easy_strerror(failed));
        status = 0;
    }
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    mem_free(url);
    return status;
}
