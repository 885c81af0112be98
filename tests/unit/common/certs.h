/* certs.h - a self-signed certificate for "localhost" and 127.0.0.1, made for one test. */
#ifndef TESTS_UNIT_COMMON_CERTS_H
#define TESTS_UNIT_COMMON_CERTS_H

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/suite.h"

struct certs {
    char dir[64];
    char cert[96], key[96];
};

static inline void add_extension(X509 *x, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, x, x, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    ck_assert_ptr_nonnull(e);
    X509_add_ext(x, e, -1);
    X509_EXTENSION_free(e);
}

static inline void certs_write(const struct certs *c, X509 *x, EVP_PKEY *key)
{
    FILE *f = fopen(c->cert, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(PEM_write_X509(f, x), 1);
    fclose(f);
    f = fopen(c->key, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(f);
}

/* Valid from and to so many seconds from now. */
static inline void certs_make_for(struct certs *c, long from, long to)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(c->dir, sizeof c->dir, "%.40s/certs-XXXXXX", tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(c->dir));
    snprintf(c->cert, sizeof c->cert, "%s/cert.pem", c->dir);
    snprintf(c->key, sizeof c->key, "%s/key.pem", c->dir);

    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), from);
    X509_gmtime_adj(X509_getm_notAfter(x), to);
    X509_set_pubkey(x, key);
    X509_NAME *name = X509_get_subject_name(x);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"lgm test", -1, -1,
                               0);
    X509_set_issuer_name(x, name);
    add_extension(x, NID_basic_constraints, "critical,CA:TRUE");
    add_extension(x, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    ck_assert_int_gt(X509_sign(x, key, EVP_sha256()), 0);
    certs_write(c, x, key);
    X509_free(x);
    EVP_PKEY_free(key);
}

static inline void certs_make(struct certs *c)
{
    certs_make_for(c, -60, 3600);
}

static inline void certs_remove(const struct certs *c)
{
    if (!c->dir[0])
        return;
    unlink(c->cert);
    unlink(c->key);
    rmdir(c->dir);
}

#endif
