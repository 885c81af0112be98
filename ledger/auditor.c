#include "ledger/auditor.h"

#include "common/mem.h"

enum { ROUNDS_MAX = 12 };

void auditor_init(struct auditor *a, uint64_t delay_us, uint64_t period_us, uint64_t retry_us,
                  uint64_t grace_us, uint64_t now)
{
    *a = (struct auditor){.delay_us = delay_us,
                          .period_us = period_us,
                          .retry_us = retry_us,
                          .grace_us = grace_us,
                          .next_period = now};
}

void auditor_drop(struct auditor *a)
{
    mem_free(a->at);
    *a = (struct auditor){0};
}

static void grow(struct auditor *a, uint32_t n)
{
    if (n <= a->n)
        return;
    a->at = mem_resize(a->at, n * sizeof *a->at);
    for (uint32_t i = a->n; i < n; i++)
        a->at[i] = (struct auditor_bookie){0};
    a->n = n;
}

void auditor_saw(struct auditor *a, uint32_t bookie, bool here, bool leaving, uint64_t now)
{
    grow(a, bookie + 1);
    struct auditor_bookie *k = &a->at[bookie];
    bool news = !k->known || k->here != here || k->leaving != leaving;

    if (!news)
        return;
    if (!here && (!k->known || k->here))
        k->lost_at = k->known ? now : now + a->grace_us;
    k->known = true;
    k->here = here;
    k->leaving = leaving;
    k->audited = k->auditing = false;
    k->rounds = 0;
    k->look_at = now;
}

void auditor_pause(struct auditor *a, bool paused)
{
    a->paused = paused;
}

void auditor_ask(struct auditor *a)
{
    a->asked = true;
}

static bool waits(const struct auditor_bookie *k)
{
    return k->known && (!k->here || k->leaving) && !k->audited;
}

static uint64_t first_due(const struct auditor *a, uint64_t now)
{
    uint64_t due = a->asked ? now : a->next_period, last = now;
    unsigned lost = 0;

    for (uint32_t i = 0; i < a->n; i++) {
        const struct auditor_bookie *k = &a->at[i];
        bool again = k->leaving || k->rounds > 0;
        uint64_t at = again ? k->look_at : k->lost_at + a->delay_us;
        if (!waits(k))
            continue;
        due = at < due ? at : due;
        lost += !k->here && k->rounds == 0;
        last = !k->here && k->lost_at > last ? k->lost_at : last;
    }
    return lost > 1 && last < due ? last : due;
}

uint64_t auditor_due(const struct auditor *a, uint64_t now)
{
    if (a->running || a->paused)
        return AUDITOR_NEVER;
    uint64_t due = first_due(a, now);
    return due < a->not_before ? a->not_before : due;
}

void auditor_began(struct auditor *a, uint64_t now)
{
    bool all = a->asked || now >= a->next_period;
    unsigned lost = 0;

    for (uint32_t i = 0; i < a->n; i++)
        lost += waits(&a->at[i]) && !a->at[i].here;
    for (uint32_t i = 0; i < a->n; i++) {
        struct auditor_bookie *k = &a->at[i];
        bool over = a->asked || k->rounds > 0 || now >= k->lost_at + (lost > 1 ? 0 : a->delay_us);
        k->auditing = k->known && (k->leaving || (!k->here && (over || k->audited)));
        k->found = false;
    }
    a->running = true;
    a->asked = a->unsettled = false;
    if (all)
        a->next_period = a->period_us ? now + a->period_us : AUDITOR_NEVER;
}

bool auditor_is_after(struct auditor *a, uint32_t bookie)
{
    if (bookie >= a->n || !a->at[bookie].auditing)
        return false;
    a->at[bookie].found = true;
    return true;
}

void auditor_in_recovery(struct auditor *a)
{
    a->unsettled = true;
}

static void audited(const struct auditor *a, struct auditor_bookie *k, uint64_t now)
{
    k->audited = !a->unsettled && (!k->leaving || !k->found);
    k->look_at = now + (a->unsettled ? a->retry_us << k->rounds : a->retry_us);
    if (!a->unsettled)
        k->rounds = 0;
    else if (k->rounds < ROUNDS_MAX)
        k->rounds++;
}

bool auditor_is_empty(const struct auditor *a, uint32_t bookie)
{
    return bookie < a->n && a->at[bookie].audited && !a->at[bookie].found;
}

void auditor_again(struct auditor *a, uint32_t bookie, uint64_t now)
{
    a->at[bookie].audited = false;
    a->at[bookie].look_at = now + a->retry_us;
}

void auditor_ended(struct auditor *a, bool all_marked, uint64_t now)
{
    for (uint32_t i = 0; i < a->n; i++) {
        struct auditor_bookie *k = &a->at[i];
        if (k->auditing && all_marked)
            audited(a, k, now);
        k->auditing = false;
    }
    a->running = false;
    a->not_before = all_marked ? 0 : now + a->retry_us;
}
