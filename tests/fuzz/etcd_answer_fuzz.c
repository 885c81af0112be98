#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "metadata/etcd_guard.h"
#include "metadata/etcd_keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void judge(uint8_t how, const Etcd__TxnResponse *r)
{
    static const int64_t versions[] = {META_ABSENT, META_ANY, 0, 3};
    const struct slice mine = {.base = (const uint8_t *)"mine", .len = 4};
    const struct meta_op ops[] = {{META_PUT, "/a", mine, versions[how & 3]},
                                  {META_REMOVE, "/b", {0}, versions[how >> 2 & 3]},
                                  {META_CHECK, "/c", {0}, versions[how >> 4 & 3]}};
    const int64_t leases[3] = {0};
    const struct etcd_write one = {.ops = ops, .n = 1, .leases = leases};
    const struct etcd_write all = {.ops = ops, .n = 3, .leases = leases};
    struct etcd_guard g = {.since = 100, .first = 100, .in_doubt = how & 0x40}, start = g;
    struct etcd_hold hold = {.key = "/a", .value = mine, .lease = 9, .refreshes = how & 0x80};

    etcd_write_judge(&one, &g, r);
    if (g.since < start.since || g.first < start.first)
        abort();
    g = start;
    if (etcd_write_judge(&all, &g, r).kind == ETCD_DONE && !r->succeeded && !g.in_doubt)
        abort();
    g = start;
    etcd_hold_judge(&hold, &g, r);
    g = start;
    etcd_release_judge(9, &g, r);
}

static void read_keys(const Etcd__WatchResponse *w)
{
    for (size_t i = 0; i < w->n_events; i++) {
        const Etcd__KeyValue *kv = w->events[i]->kv;
        if (!kv)
            continue;
        char *key = etcd_key_shown("/r", view_of(kv->key.data, kv->key.len));
        if (key && strlen(key) + 2 != kv->key.len)
            abort();
        mem_free(key);
    }
}

/* Whatever an answer holds, it is judged; one that does not say so is never taken as done. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    Etcd__TxnResponse *r = etcd__txn_response__unpack(NULL, size - 1, data + 1);
    if (r) {
        judge(data[0], r);
        etcd__txn_response__free_unpacked(r, NULL);
    }
    Etcd__WatchResponse *w = etcd__watch_response__unpack(NULL, size - 1, data + 1);
    if (w) {
        read_keys(w);
        etcd__watch_response__free_unpacked(w, NULL);
    }
    return 0;
}
