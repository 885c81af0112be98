/* Protocols and ciphers, by the names that configurations use. */
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/metric.h"
#include "common/tls_inside.h"

static const char between[] = ", :";

static enum err refused(const char *what, const char *value, const char *reason)
{
    log_event(LOG_ERROR, "tls.refused", F_STR("what", what), F_STR("value", value),
              F_STR("reason", reason));
    return ERR_BAD_CONFIG;
}

/* Each word of the list, until one is refused. */
static enum err each_word(const char *list, enum err (*take)(void *ctx, const char *word),
                          void *ctx)
{
    enum err err = ERR_OK;

    for (list += strspn(list, between); !err && *list; list += strspn(list, between)) {
        const size_t len = strcspn(list, between);
        char *word = mem_string_n(list, len);
        err = take(ctx, word);
        mem_free(word);
        list += len;
    }
    return err;
}

/* ---- protocols ---- */

struct protocols {
    bool tls12, tls13;
};

static enum err take_protocol(void *ctx, const char *word)
{
    struct protocols *p = ctx;

    if (strcmp(word, "TLSv1.2") == 0)
        p->tls12 = true;
    else if (strcmp(word, "TLSv1.3") == 0)
        p->tls13 = true;
    else
        return refused("protocol", word, "TLSv1.2 and TLSv1.3 are given");
    return ERR_OK;
}

enum err tls_choose_protocols(SSL_CTX *ctx, const char *list)
{
    struct protocols p = {0};

    TRY(each_word(list, take_protocol, &p));
    if (!p.tls12 && !p.tls13)
        return ERR_OK;
    SSL_CTX_set_options(ctx, (p.tls12 ? 0 : SSL_OP_NO_TLSv1_2) | (p.tls13 ? 0 : SSL_OP_NO_TLSv1_3));
    return ERR_OK;
}

/* ---- ciphers ---- */

struct ciphers {
    SSL_CTX *ctx;
    struct text tls12, tls13; /* as OpenSSL takes them */
};

/* TLS 1.3 has its own; OpenSSL leaves out silently those that it does not know. */
static bool is_tls13(const char *word)
{
    static const char *const all[] = {"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256",
                                      "TLS_AES_128_GCM_SHA256", "TLS_AES_128_CCM_SHA256",
                                      "TLS_AES_128_CCM_8_SHA256"};

    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(word, all[i]) == 0)
            return true;
    return false;
}

static enum err take_cipher(void *ctx, const char *word)
{
    struct ciphers *c = ctx;
    const bool newer = is_tls13(word);
    const char *known = newer ? word : OPENSSL_cipher_name(word);
    const char *name = strcmp(known, "(NONE)") == 0 ? word : known;
    struct text *list = newer ? &c->tls13 : &c->tls12;
    char why[160];

    if ((newer ? SSL_CTX_set_ciphersuites(c->ctx, name) : SSL_CTX_set_cipher_list(c->ctx, name)) !=
        1)
        return refused("cipher", word, tls_last_error(why, sizeof why));
    text_add(list, "%s%s", list->len > 0 ? ":" : "", name);
    return ERR_OK;
}

/* A protocol for which none is named is not spoken. */
static enum err use_ciphers(const struct ciphers *c)
{
    const bool fine = (!c->tls12.at || SSL_CTX_set_cipher_list(c->ctx, c->tls12.at) == 1) &&
                      (!c->tls13.at || SSL_CTX_set_ciphersuites(c->ctx, c->tls13.at) == 1);
    char why[160];

    if (!fine)
        return refused("ciphers", c->tls12.at ? c->tls12.at : c->tls13.at,
                       tls_last_error(why, sizeof why));
    SSL_CTX_set_options(c->ctx, (c->tls12.at ? 0 : SSL_OP_NO_TLSv1_2) |
                                    (c->tls13.at ? 0 : SSL_OP_NO_TLSv1_3));
    const uint64_t none = SSL_OP_NO_TLSv1_2 | SSL_OP_NO_TLSv1_3;
    if ((SSL_CTX_get_options(c->ctx) & none) == none)
        return refused("ciphers", c->tls12.at ? c->tls12.at : c->tls13.at,
                       "none of them is of the protocols that are chosen");
    return ERR_OK;
}

enum err tls_choose_ciphers(SSL_CTX *ctx, const char *list)
{
    struct ciphers c = {.ctx = ctx};
    enum err err = each_word(list, take_cipher, &c);

    if (!err && (c.tls12.at || c.tls13.at))
        err = use_ciphers(&c);
    text_drop(&c.tls12);
    text_drop(&c.tls13);
    return err;
}
