#include "tests/unit/broker/session/inn.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "metadata/init.h"
#include "tests/unit/broker/session/raw.h"

void inn_set(struct inn *i, const char *key_value)
{
    ck_assert_int_eq(config_set(&broker_config_table, &i->conf, key_value, "test"), ERR_OK);
}

static void set_bookie(struct inn *i, const char *key, const char *value)
{
    char *text = mem_format("%s=%s", key, value);
    ck_assert_int_eq(config_set(&bookie_config_table, &i->bookie_conf, text, "test"), ERR_OK);
    mem_free(text);
}

static void set_dir(struct inn *i, const char *key, const char *name)
{
    char *path = mem_format("%s/%s", i->dir, name);
    set_bookie(i, key, path);
    mem_free(path);
}

struct inn *inn_new(void)
{
    struct inn *i = mem_new(struct inn);
    const char *tmp = getenv("TMPDIR");

    snprintf(i->dir, sizeof(i->dir), "%s/lgm-broker-XXXXXX", tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(i->dir));
    ck_assert_int_eq(config_defaults(&bookie_config_table, &i->bookie_conf), ERR_OK);
    set_dir(i, "journalDirectories", "journal");
    set_dir(i, "ledgerDirectories", "ledgers");
    set_bookie(i, "bookiePort", "0");
    set_bookie(i, "bookieId", "b1");
    set_bookie(i, "advertisedAddress", "127.0.0.1");
    set_bookie(i, "listenAddress", "127.0.0.1");
    set_bookie(i, "journalMaxSizeMB", "16");
    ck_assert_int_eq(config_defaults(&broker_config_table, &i->conf), ERR_OK);
    inn_set(i, "clusterName=test");
    inn_set(i, "brokerServicePort=0");
    inn_set(i, "webServicePort=0");
    inn_set(i, "bindAddress=127.0.0.1");
    inn_set(i, "advertisedAddress=127.0.0.1");
    inn_set(i, "managedLedgerDefaultEnsembleSize=1");
    inn_set(i, "enforceDifferentHosts=false");
    inn_set(i, "managedLedgerDefaultWriteQuorum=1");
    inn_set(i, "managedLedgerDefaultAckQuorum=1");
    return i;
}

void inn_start_bookie(struct inn *i)
{
    ck_assert_int_eq(bookie_start(&i->bookie, &i->bookie_conf, i->meta, &i->loops, disk_real()),
                     ERR_OK);
}

void inn_stop_bookie(struct inn *i)
{
    bookie_stop(&i->bookie);
}

void inn_start_broker(struct inn *i)
{
    enum err err = i->authorizer ? broker_start_guarded(&i->broker, &i->conf, i->authorizer,
                                                        i->meta, &i->loops)
                                 : broker_start(&i->broker, &i->conf, i->meta, &i->loops);

    ck_assert_int_eq(err, ERR_OK);
}

void inn_stop_broker(struct inn *i)
{
    broker_stop(&i->broker);
}

void inn_open(struct inn *i)
{
    const struct cluster_urls urls = {0};

    ck_assert_int_eq(meta_memory_open(&i->meta), ERR_OK);
    ck_assert_int_eq(cluster_init(i->meta, "test", &urls), ERR_OK);
    loops_start(&i->loops, "io", 2);
    inn_start_bookie(i);
    inn_start_broker(i);
}

void inn_drop(struct inn **ip)
{
    struct inn *i = *ip;
    char *command = mem_format("rm -rf '%s'", i->dir);

    broker_stop(&i->broker);
    bookie_stop(&i->bookie);
    if (i->meta)
        meta_close(&i->meta);
    loops_stop(&i->loops);
    config_drop(&broker_config_table, &i->conf);
    config_drop(&bookie_config_table, &i->bookie_conf);
    ck_assert_int_eq(system(command), 0);
    mem_free(command);
    mem_free(i);
    *ip = NULL;
}

/* Puts the chunks of a body together, if it came in such. */
static void unchunk(char *answer)
{
    char *body = strstr(answer, "\r\n\r\n");

    if (!body || !strstr(answer, "Transfer-Encoding: chunked"))
        return;
    char *to = body += 4;
    for (size_t n; (n = strtoul(body, &body, 16)) > 0; body += n + 2) {
        body += 2;
        memmove(to, body, n);
        to += n;
    }
    *to = '\0';
}

char *inn_get(const struct inn *i, const char *path)
{
    char *request = mem_format("GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);
    int fd = raw_socket(broker_web_port(i->broker));
    size_t len = 0, room = 65536;
    char *got = mem_alloc(room);
    ssize_t n;

    ck_assert_int_eq(write(fd, request, strlen(request)), (ssize_t)strlen(request));
    do {
        if (room - len < 32768)
            got = mem_resize(got, room *= 2);
        n = read(fd, got + len, room - len - 1);
        len += n > 0 ? (size_t)n : 0;
    } while (n > 0);
    got[len] = '\0';
    close(fd);
    unchunk(got);
    mem_free(request);
    return got;
}

long long inn_metric(const struct inn *i, const char *name)
{
    char *text = inn_get(i, "/metrics");
    char *start = mem_format("\n%s{", name);
    const char *at = strstr(text, start);
    long long value = -1;

    if (at)
        value = strtoll(strchr(at, ' ') + 1, NULL, 10);
    mem_free(text);
    mem_free(start);
    return value;
}
