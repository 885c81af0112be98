#include "cli/store.h"

#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "common/mem.h"
#include "metadata/wait.h"

enum { PAGE = 500, PATIENCE_US = 10 * 1000 * 1000 };

int cli_store_open(const char *command, const char *url, const struct meta_etcd_conf *etcd,
                   struct metadata **m)
{
    struct meta_etcd_conf conf = *etcd;

    if (!url || !*url)
        return usage_error(command, "--metadata URL is needed");
    conf.operation_timeout_us = PATIENCE_US;
    const enum err err = meta_open(m, url, &conf);
    if (err == ERR_BAD_CONFIG)
        return usage_error(command, "'%s' is no metadata store", url);
    if (err) {
        fprintf(stderr, "lgm %s: %s: %s\n", command, url, err_text(err));
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

struct scan {
    struct meta_wait wait;
    void (*each)(void *ctx, const struct meta_item *item);
    void *ctx;
    char *after;
};

static void look(struct meta_wait *w, const struct meta_reply *r)
{
    struct scan *s = container_of(w, struct scan, wait);

    mem_free(s->after);
    s->after = !r->err && r->more && r->count > 0 ? mem_string(r->items[r->count - 1].key) : NULL;
    for (size_t i = 0; !r->err && i < r->count; i++)
        s->each(s->ctx, &r->items[i]);
}

enum err store_scan(struct metadata *m, const char *prefix, bool keys_only,
                    void (*each)(void *ctx, const struct meta_item *item), void *ctx)
{
    struct scan s = {.each = each, .ctx = ctx};
    enum err err;

    do {
        meta_wait_begin(&s.wait);
        s.wait.look = look;
        meta_range(m, prefix, s.after, PAGE, keys_only, &s.wait.call);
        err = meta_wait_end(&s.wait);
    } while (!err && s.after);
    mem_free(s.after);
    return err;
}

enum err store_remove(struct metadata *m, const char *const *keys, size_t n)
{
    struct meta_op ops[META_OPS_MAX];
    struct meta_wait w;

    for (size_t i = 0; i < n; i++)
        ops[i] = (struct meta_op){.kind = META_REMOVE, .key = keys[i], .expected = META_ANY};
    meta_wait_begin(&w);
    meta_txn(m, ops, n, &w.call);
    return meta_wait_end(&w);
}

bool store_has(struct metadata *m, const char *key, enum err *err)
{
    struct slice value = {0};

    *err = meta_get_wait(m, key, &value, NULL);
    slice_drop(&value);
    bool has = !*err;
    if (*err == ERR_NOT_FOUND)
        *err = ERR_OK;
    return has;
}

bool store_asks(const char *question)
{
    char line[16];

    printf("%s  Type yes to go on: ", question);
    fflush(stdout);
    return fgets(line, sizeof line, stdin) && strcmp(line, "yes\n") == 0;
}

bool store_option(int option, const char *value, const char **url, struct meta_etcd_conf *etcd)
{
    const struct {
        int option;
        const char **place;
    } places[] = {{'m', url},
                  {'u', &etcd->user},
                  {'p', &etcd->password},
                  {'t', &etcd->trust_file},
                  {'C', &etcd->cert_file},
                  {'K', &etcd->key_file}};

    for (unsigned i = 0; i < sizeof places / sizeof *places; i++)
        if (places[i].option == option) {
            *places[i].place = value;
            return true;
        }
    return false;
}
