#include "common/stream.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/tls_inside.h"

#define RECORD_MAX ((size_t)16 << 10) /* what one TLS record carries */
#define READ_AHEAD ((size_t)64 << 10)

static enum stream_step failed(struct stream *s, const char *op, int saved_errno)
{
    const char *name = strerrorname_np(saved_errno);
    s->err = err_of_errno(saved_errno);
    if (s->err == ERR_NOT_FOUND || s->err == ERR_EXISTS || s->err == ERR_NO_SPACE)
        s->err = ERR_IO;
    snprintf(s->why, sizeof s->why, "%s: %s", op, name ? name : "?");
    return STREAM_FAILED;
}

/* ---- TLS ------------------------------------------------------------------------------------ */

static void set_name(SSL *ssl, const char *name)
{
    unsigned char address[16];
    if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1) {
        X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name);
        return;
    }
    SSL_set_tlsext_host_name(ssl, name);
    SSL_set1_host(ssl, name);
}

void stream_secure(struct stream *s, const struct tls *tls, const char *name, bool dialled)
{
    s->ssl = tls_ssl(tls);
    SSL_set_fd(s->ssl, s->fd);
    SSL_set_read_ahead(s->ssl, 1); /* several records, and their lengths, in one system call */
    SSL_set_default_read_buffer_len(s->ssl, READ_AHEAD);
    if (!dialled) {
        SSL_set_accept_state(s->ssl);
        return;
    }
    SSL_set_connect_state(s->ssl);
    if (name && tls->verifies_names)
        set_name(s->ssl, name);
    else if (name)
        SSL_set_tlsext_host_name(s->ssl, name);
}

static enum stream_step ssl_failed(struct stream *s, const char *op)
{
    char text[120];
    const long verdict = SSL_get_verify_result(s->ssl);
    s->err = verdict == X509_V_OK ? ERR_IO : ERR_UNAUTHORIZED;
    const char *why = verdict == X509_V_OK ? tls_last_error(text, sizeof text)
                                           : X509_verify_cert_error_string(verdict);
    snprintf(s->why, sizeof s->why, "%s: %s", op, why);
    ERR_clear_error();
    return STREAM_FAILED;
}

/* A peer that just closes its socket has ended the stream as one that says so first: frames
 * carry their lengths, so a cut is noticed there. */
static bool cut_short(void)
{
    return ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
}

static enum stream_step ssl_step(struct stream *s, int result, const char *op)
{
    const int saved = errno;
    switch (SSL_get_error(s->ssl, result)) {
    case SSL_ERROR_NONE:
        return STREAM_DONE;
    case SSL_ERROR_WANT_READ:
        return STREAM_WANTS_READ;
    case SSL_ERROR_WANT_WRITE:
        return STREAM_WANTS_WRITE;
    case SSL_ERROR_ZERO_RETURN:
        return STREAM_END;
    case SSL_ERROR_SYSCALL:
        ERR_clear_error();
        return saved ? failed(s, op, saved) : STREAM_END;
    default:
        if (!cut_short())
            return ssl_failed(s, op);
        ERR_clear_error();
        return STREAM_END;
    }
}

enum stream_step stream_shake(struct stream *s)
{
    ERR_clear_error();
    errno = 0;
    const enum stream_step step = ssl_step(s, SSL_do_handshake(s->ssl), "handshake");
    if (step != STREAM_END)
        return step;
    return failed(s, "handshake", ECONNRESET);
}

static enum stream_step ssl_read(struct stream *s, const struct iovec iov[2], size_t *got)
{
    const struct iovec *into = &iov[iov[0].iov_len == 0];
    ERR_clear_error();
    errno = 0;
    return ssl_step(s, SSL_read_ex(s->ssl, into->iov_base, into->iov_len, got), "read");
}

/* Slices are gathered into whole records: one of a few bytes costs as much as a full one. */
static enum stream_step ssl_write(struct stream *s, const struct outbox *o, size_t *sent)
{
    unsigned char record[RECORD_MAX];
    const size_t len = outbox_copy(o, record, sizeof record);
    ERR_clear_error();
    errno = 0;
    return ssl_step(s, SSL_write_ex(s->ssl, record, len, sent), "write");
}

/* ---- plain ---------------------------------------------------------------------------------- */

static enum stream_step plain_read(struct stream *s, const struct iovec iov[2], size_t *got)
{
    const ssize_t n = readv(s->fd, iov, 2);
    if (n == 0)
        return STREAM_END;
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? STREAM_WANTS_READ : failed(s, "read", errno);
    *got = (size_t)n;
    return *got < iov[0].iov_len + iov[1].iov_len ? STREAM_DRAINED : STREAM_DONE;
}

static enum stream_step plain_write(struct stream *s, const struct outbox *o, size_t *sent)
{
    struct iovec iov[IOV_MAX];
    struct msghdr m = {.msg_iov = iov};
    m.msg_iovlen = (size_t)outbox_iov(o, iov, IOV_MAX);
    const ssize_t n = sendmsg(s->fd, &m, MSG_NOSIGNAL);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? STREAM_WANTS_WRITE : failed(s, "write", errno);
    *sent = (size_t)n;
    return STREAM_DONE;
}

enum stream_step stream_read(struct stream *s, const struct iovec iov[2], size_t *got)
{
    *got = 0;
    return s->ssl ? ssl_read(s, iov, got) : plain_read(s, iov, got);
}

enum stream_step stream_write(struct stream *s, const struct outbox *o, size_t *sent)
{
    *sent = 0;
    return s->ssl ? ssl_write(s, o, sent) : plain_write(s, o, sent);
}

void stream_end(struct stream *s)
{
    if (s->ssl && SSL_is_init_finished(s->ssl))
        SSL_shutdown(s->ssl);
    ERR_clear_error();
    shutdown(s->fd, SHUT_WR);
}

void stream_close(struct stream *s)
{
    SSL_free(s->ssl);
    s->ssl = NULL;
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}
