#include "broker/managed_ledger/managed_ledger_inside.h"
#include "broker/managed_ledger/roller.h"
#include "broker/managed_ledger/trimmer.h"
#include "common/log.h"

/* ---- rolling -----------------------------------------------------------------------------------
 */

static bool may_roll(const struct managed_ledger *m)
{
    return m->core.state == ML_OPEN && !ml_core_rolling(&m->core) &&
           loop_now(m->env->home) >= m->roll_after_us;
}

void ml_care_full(struct managed_ledger *m)
{
    if (!may_roll(m))
        return;
    struct roller_ledger current = {
        .id = m->core.ledger,
        .entries = m->core.sent_entries,
        .bytes = m->core.sent_bytes,
        .age_ms = (int64_t)((loop_now(m->env->home) - m->current_since_us) / 1000),
    };
    if (roller_due(ml_conf_of(m), &current))
        ml_core_roll(&m->core);
}

/* ---- ledgers that go ----------------------------------------------------------------------------
 */

void ml_doom(struct managed_ledger *m, int64_t ledger)
{
    remembered_forget(&m->remembered, ledger);
    if (m->n_doomed == m->doomed_room) {
        m->doomed_room = m->doomed_room ? m->doomed_room * 2 : 4;
        m->doomed = mem_resize(m->doomed, m->doomed_room * sizeof(*m->doomed));
    }
    m->doomed[m->n_doomed++] = ledger;
}

/* Kept until then, so that the node never forgets the greatest id: the next ledger's must be
 * above it, also for a broker that knows nothing but the node. */
void ml_doom_hollow(struct managed_ledger *m)
{
    struct segment *last;

    while ((last = segments_last(&m->segments)) && !last->open && last->entries == 0) {
        ml_doom(m, last->ledger);
        m->segments.n--;
    }
}

static void trim(struct managed_ledger *m)
{
    unsigned n =
        trimmer_count(&m->segments, ml_cursors_slowest(m), ml_conf_of(m), (int64_t)loop_wall_ms());
    int64_t bytes = 0;

    if (n == 0)
        return;
    for (unsigned i = 0; i < n; i++) {
        ml_doom(m, m->segments.at[i].ledger);
        ml_source_forget(m, m->segments.at[i].ledger);
        bytes += m->segments.at[i].bytes;
    }
    log_event(LOG_INFO, "managed_ledger.trimmed", F_STR("topic", m->name), F_U64("ledgers", n),
              F_I64("upto", m->segments.at[n - 1].ledger), F_I64("bytes", bytes));
    segments_drop_first(&m->segments, n);
    ml_node_quietly(m);
    ml_read_soon(m);
}

static void care(struct task *t)
{
    struct managed_ledger *m = container_of(t, struct managed_ledger, care_task);

    m->caring = false;
    if (m->life == ML_LIFE_SERVING && !m->failed) {
        ml_care_full(m);
        trim(m);
    }
    ml_release(m);
}

void ml_care(struct managed_ledger *m)
{
    if (m->caring)
        return;
    m->caring = true;
    m->care_task.run = care;
    ml_hold(m);
    loop_post(m->env->home, &m->care_task);
}
