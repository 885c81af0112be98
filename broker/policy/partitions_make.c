#include "broker/policy/partitions_make.h"

#include <assert.h>

#include "common/log.h"
#include "metadata/records.h"

static void read_back(struct meta_call *c, const struct meta_reply *r)
{
    struct partitions_make *m = container_of(c, struct partitions_make, call);
    struct partitioned_topic t = {0};
    enum err err = r->err;

    if (!err)
        err = partitioned_topic_read(slice_view(r->value), &t);
    m->done(m, err == ERR_NOT_FOUND ? ERR_NOT_READY : err, t.deleted ? 0 : t.partitions);
}

static void written(struct meta_call *c, const struct meta_reply *r)
{
    struct partitions_make *m = container_of(c, struct partitions_make, call);
    bool look = r->err == ERR_BAD_VERSION || r->err == ERR_EXISTS || r->err == ERR_UNKNOWN_STATE;

    if (look) {
        m->call.done = read_back;
        meta_get(policies_metadata(m->policies), m->key, &m->call);
        return;
    }
    if (!r->err)
        log_event(LOG_INFO, "topic.partitioned", F_STR("key", m->key),
                  F_I64("partitions", m->partitions));
    m->done(m, r->err, r->err ? 0 : m->partitions);
}

void partitions_make(struct policies *p, const struct topic_name *name, int32_t partitions,
                     struct partitions_make *m)
{
    enum err path = path_partitioned(name, m->key);

    assert(path == ERR_OK); /* it came through topic_facts_name() */
    (void)path;
    m->policies = p;
    m->partitions = partitions;
    m->call = (struct meta_call){.home = loop_mine(), .done = written};
    meta_put(policies_metadata(p), m->key, partitioned_record_write(partitions), META_ABSENT,
             &m->call);
}
