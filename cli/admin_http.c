/* One request, one answer. */
#include <ctype.h>
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

/* Where what comes goes. */
struct sink {
    curl_write_callback body, header;
    void *ctx;
};

static CURLcode ask(CURL *curl, const struct admin_call *c, const char *url, const char *body,
                    const struct sink *to)
{
    set_tls(curl, c);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, c->verb->method);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)TIMEOUT_S);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, (long)REDIRECTS);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, to->body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, to->ctx);
    if (to->header) {
        curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, to->header);
        curl_easy_setopt(curl, CURLOPT_HEADERDATA, to->ctx);
    }
    if (body)
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    return curl_easy_perform(curl);
}

static long request(const struct admin_call *c, const char *target, const char *body,
                    const struct sink *to)
{
    size_t len = strlen(c->url);
    long status = 0;

    while (len > 0 && c->url[len - 1] == '/')
        len--;
    char *url = mem_format("%.*s%s", (int)len, c->url, target);
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    CURLcode failed = ask(curl, c, url, body, to);
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

long admin_http(const struct admin_call *c, const char *target, const char *body,
                struct text *answer)
{
    return request(c, target, body, &(struct sink){.body = on_body, .ctx = answer});
}

/* ---- bytes ---- */

static size_t on_bytes(char *at, size_t size, size_t n, void *ctx)
{
    struct admin_bytes *b = ctx;
    const size_t len = size * n;

    if (b->room - b->len < len) {
        b->room = 2 * b->room + len;
        b->base = mem_resize(b->base, b->room);
    }
    if (len > 0)
        memcpy(b->base + b->len, at, len);
    b->len += len;
    return len;
}

/* "Name: value\r\n", once a field. */
static size_t on_header(char *at, size_t size, size_t n, void *ctx)
{
    struct admin_bytes *b = ctx;
    char *line = mem_string_n(at, size * n), *value = strchr(line, ':');

    if (value) {
        *value++ = '\0';
        value += strspn(value, " ");
        value[strcspn(value, "\r\n")] = '\0';
        for (char *c = line; *c; c++)
            *c = (char)tolower((unsigned char)*c);
        json_object_object_add(b->headers, line, json_object_new_string(value));
    }
    mem_free(line);
    return size * n;
}

long admin_http_bytes(const struct admin_call *c, const char *target, struct admin_bytes *out)
{
    *out = (struct admin_bytes){.headers = json_object_new_object()};
    long status =
        request(c, target, NULL, &(struct sink){.body = on_bytes, .header = on_header, .ctx = out});
    char end = '\0'; /* behind the last: what is text reads as such */
    on_bytes(&end, 1, 1, out);
    out->len--;
    return status;
}

void admin_bytes_drop(struct admin_bytes *b)
{
    mem_free(b->base);
    json_object_put(b->headers);
    *b = (struct admin_bytes){0};
}
