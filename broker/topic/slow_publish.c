#include "broker/topic/slow_publish.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/log.h"
#include "common/log_limit.h"

enum { LINES_A_SECOND = 10 };

/* Stamps of two loops may be a round apart. */
static uint64_t between(uint64_t from, uint64_t to)
{
    return to > from ? to - from : 0;
}

/* Sent, and not answered by enough: the last try was with a ledger that failed it, and kept it. */
static void stages_of_ledger(const struct ml_add *a, uint64_t us[STAGES])
{
    const struct ledger_append *l = &a->append;
    const uint64_t sent = l->sent_us ? l->sent_us : a->done_us;
    uint64_t waited = 0;

    for (unsigned i = STAGE_BOOKIES; i <= STAGE_LOST; i++)
        waited += us[i];
    us[STAGE_QUEUE] = between(waited, between(a->added_us, sent));
    if (!l->safe_us)
        return;
    us[STAGE_QUORUM] = between(sent, l->safe_us);
    us[STAGE_ORDER] = between(l->safe_us, a->done_us);
}

void slow_publish_stages(const struct publish *m, uint64_t now_us, uint64_t us[STAGES])
{
    const struct ml_add *a = &m->add;

    for (unsigned i = 0; i < STAGES; i++)
        us[i] = 0;
    if (!a->added_us) { /* it was refused at the door */
        us[STAGE_HELD] = between(m->came_us, now_us);
        return;
    }
    us[STAGE_HELD] = between(m->came_us, a->added_us);
    us[STAGE_BOOKIES] = a->waits.ms[ML_WAIT_BOOKIES] * UINT64_C(1000);
    us[STAGE_CLOSE] = a->waits.ms[ML_WAIT_CLOSE] * UINT64_C(1000);
    us[STAGE_CREATE] = a->waits.ms[ML_WAIT_CREATE] * UINT64_C(1000);
    us[STAGE_NODE] = a->waits.ms[ML_WAIT_NODE] * UINT64_C(1000);
    us[STAGE_LOST] = a->lost_ms * UINT64_C(1000);
    stages_of_ledger(a, us);
    us[STAGE_REPLY] = between(a->done_us, now_us);
}

static enum publish_stage longest(const uint64_t us[STAGES])
{
    unsigned which = 0;

    for (unsigned i = 1; i < STAGES; i++)
        if (us[i] > us[which])
            which = i;
    return (enum publish_stage)which;
}

static const char *named(const char *bookie)
{
    return bookie ? bookie : "";
}

void slow_publish_tell(struct log_limit *limit, const char *topic, const char *producer,
                       const struct publish *m, uint64_t now_us)
{
    static const char *const names[STAGES] = {
        [STAGE_HELD] = "held",   [STAGE_QUEUE] = "queue",   [STAGE_BOOKIES] = "bookies_missing",
        [STAGE_CLOSE] = "close", [STAGE_CREATE] = "create", [STAGE_NODE] = "cas",
        [STAGE_LOST] = "lost",   [STAGE_QUORUM] = "quorum", [STAGE_ORDER] = "order",
        [STAGE_REPLY] = "reply",
    };
    uint64_t us[STAGES], left_out;
    char at[48];

    if (!log_limit_pass(limit, LINES_A_SECOND, now_us, &left_out))
        return;
    slow_publish_stages(m, now_us, us);
    snprintf(at, sizeof(at), "%" PRId64 ":%" PRId64, m->at.ledger, m->at.entry);
    log_event(
        LOG_WARN, "publish.slow", F_STR("topic", topic), F_STR("producer", producer),
        F_STR("entry", at), F_U64("bytes", m->bytes),
        F_U64("total_ms", (now_us - m->came_us) / 1000), F_STR("stage", names[longest(us)]),
        F_U64("held_ms", us[STAGE_HELD] / 1000), F_U64("queue_ms", us[STAGE_QUEUE] / 1000),
        F_U64("bookies_missing_ms", us[STAGE_BOOKIES] / 1000),
        F_U64("close_ms", us[STAGE_CLOSE] / 1000), F_U64("create_ms", us[STAGE_CREATE] / 1000),
        F_U64("cas_ms", us[STAGE_NODE] / 1000), F_U64("lost_ms", us[STAGE_LOST] / 1000),
        F_U64("quorum_ms", us[STAGE_QUORUM] / 1000), F_U64("order_ms", us[STAGE_ORDER] / 1000),
        F_U64("reply_ms", us[STAGE_REPLY] / 1000), F_STR("bookie", named(m->add.append.last)),
        F_STR("silent", named(m->add.append.silent)), F_ERR(m->err), F_U64("suppressed", left_out));
}
