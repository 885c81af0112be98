#include "cli/verify_judge.h"

#include <string.h>

#include "common/mem.h"

/* One record, by its number. */
struct sighting {
    struct message_id *ids; /* where it was seen, each once */
    unsigned n_ids;
    unsigned again; /* at an id where it had been seen */
    uint32_t crc;
    bool seen;
};

struct judge {
    struct sighting *at;
    uint64_t room;
    uint64_t highest; /* number + 1 of the furthest record seen */
    uint64_t reordered, corrupt;
    uint64_t acked_seen_upto; /* cache for judge_complete: all acked below were seen */
};

struct judge *judge_new(void)
{
    return mem_new(struct judge);
}

void judge_drop(struct judge **j)
{
    for (uint64_t i = 0; i < (*j)->room; i++)
        mem_free((*j)->at[i].ids);
    mem_free((*j)->at);
    mem_free(*j);
    *j = NULL;
}

static struct sighting *sighting(struct judge *j, uint64_t seq)
{
    if (seq >= j->room) {
        uint64_t room = seq < 1024 ? 2048 : seq * 2;
        j->at = mem_resize(j->at, room * sizeof *j->at);
        memset(j->at + j->room, 0, (room - j->room) * sizeof *j->at);
        j->room = room;
    }
    return &j->at[seq];
}

static bool same_id(struct message_id a, struct message_id b)
{
    return a.ledger == b.ledger && a.entry == b.entry && a.batch_index == b.batch_index;
}

static void note_id(struct sighting *s, struct message_id id)
{
    for (unsigned i = 0; i < s->n_ids; i++)
        if (same_id(s->ids[i], id)) {
            s->again++;
            return;
        }
    s->ids = mem_resize(s->ids, (s->n_ids + 1) * sizeof *s->ids);
    s->ids[s->n_ids++] = id;
}

void judge_saw(struct judge *j, const struct verify_record *r, uint32_t crc, struct message_id id)
{
    struct sighting *s = sighting(j, r->seq);
    note_id(s, id);
    if (s->seen)
        return;
    s->seen = true;
    s->crc = crc;
    if (r->seq + 1 < j->highest)
        j->reordered++;
    else
        j->highest = r->seq + 1;
    if (r->seq > 0 && j->at[r->seq - 1].seen && j->at[r->seq - 1].crc != r->before)
        j->corrupt++;
}

void judge_saw_corrupt(struct judge *j)
{
    j->corrupt++;
}

bool judge_has_seen(const struct judge *j, uint64_t seq)
{
    return seq < j->room && j->at[seq].seen;
}

bool judge_complete(const struct judge *j, const struct verify_evidence *e)
{
    uint64_t *upto = &((struct judge *)(uintptr_t)j)->acked_seen_upto;
    while (*upto < e->room && (!e->at[*upto].acked || judge_has_seen(j, *upto)))
        (*upto)++;
    return *upto >= e->room;
}

struct verdict judge_verdict(const struct judge *j, const struct verify_evidence *e)
{
    struct verdict v = {.reordered = j->reordered, .corrupt = j->corrupt, .lost = j->corrupt};
    for (uint64_t i = 0; i < e->count; i++) {
        bool acked = i < e->room && e->at[i].acked, resent = i < e->room && e->at[i].resent;
        v.lost += acked && !judge_has_seen(j, i);
        if (!judge_has_seen(j, i))
            continue;
        v.checked++;
        v.redelivered += j->at[i].again;
        if (j->at[i].n_ids > 1)
            *(resent ? &v.resent : &v.duplicated) += j->at[i].n_ids - 1;
    }
    return v;
}
