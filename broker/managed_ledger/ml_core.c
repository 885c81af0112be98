#include "broker/managed_ledger/ml_core.h"

#include <assert.h>

enum { ASKED_CREATE = 1u << 0, ASKED_LIST = 1u << 1, ASKED_CLOSE = 1u << 2 };
enum { BACKOFF_US = 50 * 1000, BACKOFF_STEPS = 7 };

#define TO(s) (1u << ML_##s)

static const uint32_t may_become[ML_STATES] = {
    [ML_NO_LEDGER] = TO(CREATING) | TO(LISTING) | TO(FENCED) | TO(CLOSED),
    [ML_WAITING] = TO(NO_LEDGER) | TO(FENCED) | TO(CLOSED),
    [ML_CREATING] = TO(LISTING) | TO(WAITING) | TO(NO_LEDGER) | TO(FENCED),
    [ML_LISTING] = TO(OPEN) | TO(WAITING) | TO(NO_LEDGER) | TO(FENCED),
    [ML_OPEN] = TO(DRAINING) | TO(FENCED),
    [ML_DRAINING] = TO(CLOSING) | TO(FENCED),
    [ML_CLOSING] = TO(NO_LEDGER) | TO(WAITING) | TO(FENCED),
    [ML_FENCED] = 0,
    [ML_CLOSED] = 0,
};

const char *ml_state_name(enum ml_state s)
{
    static const char *const names[ML_STATES] = {
        [ML_NO_LEDGER] = "NO_LEDGER", [ML_WAITING] = "WAITING", [ML_CREATING] = "CREATING",
        [ML_LISTING] = "LISTING",     [ML_OPEN] = "OPEN",       [ML_DRAINING] = "DRAINING",
        [ML_CLOSING] = "CLOSING",     [ML_FENCED] = "FENCED",   [ML_CLOSED] = "CLOSED",
    };
    return names[s];
}

/* What is always true between two events. */
static void check(const struct ml_core *c)
{
    assert(c->entries <= c->sent_entries);
    assert(c->confirmed_index <= c->next_index);
    assert(c->next == -1 || c->next > c->ledger);
    assert(list_empty(&c->flying) || c->state == ML_OPEN || c->state == ML_DRAINING ||
           c->state == ML_FENCED);
    assert(list_empty(&c->returned) || c->state == ML_DRAINING || c->state == ML_FENCED);
    assert(c->state != ML_CLOSED || list_empty(&c->waiting));
}

static void become(struct ml_core *c, enum ml_state next)
{
    assert(may_become[c->state] & 1u << next);
    c->state = next;
}

static struct ml_add *first_of(struct list_node *list)
{
    return list_entry(list->next, struct ml_add, node);
}

void ml_core_init(struct ml_core *c, const struct ml_core_ops *ops, size_t pending_max,
                  int64_t last_ledger, uint64_t next_index)
{
    *c = (struct ml_core){
        .ops = ops,
        .pending_max = pending_max,
        .ledger = last_ledger,
        .next = -1,
        .next_index = next_index,
        .confirmed_index = next_index,
    };
    list_init(&c->waiting);
    list_init(&c->flying);
    list_init(&c->returned);
}

/* ---- leaving the queue ------------------------------------------------------------------------
 */

static void confirm(struct ml_core *c, struct ml_add *a)
{
    struct position at = {c->ledger, c->entries};

    list_remove(&a->node);
    c->entries++;
    c->bytes += (int64_t)a->bytes;
    c->pending_bytes -= a->bytes;
    assert(c->confirmed_index + a->messages == a->index + 1);
    c->confirmed_index = a->index + 1;
    c->fruitless = 0;
    c->ops->confirm(c, a, at);
}

static void refuse_all(struct ml_core *c, enum err err)
{
    while (!list_empty(&c->waiting)) {
        struct ml_add *a = first_of(&c->waiting);
        list_remove(&a->node);
        c->pending_bytes -= a->bytes;
        c->ops->refuse(c, a, err);
    }
    c->n_returned = 0;
}

/* Everything that the ledger failed is back: before whatever was added since. */
static void requeue(struct ml_core *c)
{
    while (!list_empty(&c->returned)) {
        struct list_node *last = c->returned.prev;
        list_remove(last);
        list_push_front(&c->waiting, last);
    }
}

/* ---- what to do next ---------------------------------------------------------------------------
 */

static void discard_next(struct ml_core *c)
{
    int64_t ledger = c->next;

    c->next = -1;
    if (ledger >= 0)
        c->ops->discard(c, ledger);
}

static void list_it(struct ml_core *c)
{
    become(c, ML_LISTING);
    c->ledger = c->next;
    c->next = -1;
    c->entries = c->bytes = c->sent_entries = c->sent_bytes = 0;
    c->asked |= ASKED_LIST;
    c->ops->list(c, c->ledger);
}

static void ask_for_next(struct ml_core *c)
{
    if (c->asked & ASKED_CREATE)
        return;
    c->asked |= ASKED_CREATE;
    c->ops->create(c, c->ledger);
}

static void without_ledger(struct ml_core *c)
{
    if (c->ending) {
        if (c->asked)
            return;
        discard_next(c);
        refuse_all(c, ERR_CLOSED);
        become(c, ML_CLOSED);
    } else if (list_empty(&c->waiting)) {
        return;
    } else if (c->next >= 0) {
        list_it(c);
    } else {
        become(c, ML_CREATING);
        ask_for_next(c);
    }
}

static void send_waiting(struct ml_core *c)
{
    while (c->state == ML_OPEN && !list_empty(&c->waiting)) {
        struct ml_add *a = first_of(&c->waiting);
        enum err err = c->ops->append(c, a);
        if (err == ERR_BUSY && !list_empty(&c->flying))
            return;
        if (err) {
            become(c, ML_DRAINING);
            return;
        }
        list_remove(&a->node);
        list_push_back(&c->flying, &a->node);
        c->sent_entries++;
        c->sent_bytes += (int64_t)a->bytes;
    }
}

static void drain(struct ml_core *c)
{
    if (!list_empty(&c->flying))
        return;
    requeue(c);
    become(c, ML_CLOSING);
    c->asked |= ASKED_CLOSE;
    c->ops->close(c);
}

static void fenced(struct ml_core *c)
{
    if (!list_empty(&c->flying))
        return;
    requeue(c);
    refuse_all(c, ERR_FENCED);
}

static void pump(struct ml_core *c)
{
    if (c->state == ML_OPEN && c->ending)
        become(c, ML_DRAINING);
    if (c->state == ML_OPEN)
        send_waiting(c);
    if (c->state == ML_DRAINING)
        drain(c);
    if (c->state == ML_NO_LEDGER || (c->state == ML_WAITING && c->ending))
        without_ledger(c);
    if (c->state == ML_FENCED)
        fenced(c);
    check(c);
}

static uint64_t backoff_us(struct ml_core *c)
{
    unsigned steps = c->fruitless < BACKOFF_STEPS ? c->fruitless : BACKOFF_STEPS;

    c->fruitless++;
    return (uint64_t)BACKOFF_US << steps;
}

static void back_off(struct ml_core *c, enum err why)
{
    become(c, ML_WAITING);
    if (!c->ending)
        c->ops->wait(c, why, backoff_us(c));
}

/* ---- events ------------------------------------------------------------------------------------
 */

enum err ml_core_admits(const struct ml_core *c, size_t bytes)
{
    if (c->state == ML_FENCED)
        return ERR_FENCED;
    if (c->ending)
        return ERR_CLOSED;
    if (c->pending_bytes > 0 && c->pending_bytes + bytes > c->pending_max)
        return ERR_BUSY;
    return ERR_OK;
}

uint64_t ml_core_index_of(const struct ml_core *c, uint32_t messages)
{
    return c->next_index + messages - 1;
}

void ml_core_add(struct ml_core *c, struct ml_add *a)
{
    assert(!c->ending);
    assert(a->messages > 0);
    a->index = ml_core_index_of(c, a->messages);
    c->next_index += a->messages;
    c->pending_bytes += a->bytes;
    list_push_back(&c->waiting, &a->node);
    pump(c);
}

bool ml_core_rolling(const struct ml_core *c)
{
    return c->next >= 0 || c->asked & ASKED_CREATE;
}

void ml_core_roll(struct ml_core *c)
{
    if (c->state == ML_OPEN && !c->ending && !ml_core_rolling(c))
        ask_for_next(c);
}

void ml_core_end(struct ml_core *c)
{
    c->ending = true;
    pump(c);
}

void ml_core_created(struct ml_core *c, enum err err, int64_t ledger)
{
    assert(c->asked & ASKED_CREATE);
    c->asked &= ~(unsigned)ASKED_CREATE;
    if (!err)
        c->next = ledger;
    if (c->state == ML_CREATING && c->ending)
        become(c, ML_NO_LEDGER);
    else if (c->state == ML_CREATING && err)
        back_off(c, err);
    else if (c->state == ML_CREATING)
        list_it(c);
    else if (c->state == ML_OPEN && !err)
        become(c, ML_DRAINING);
    else if (c->state == ML_FENCED)
        discard_next(c);
    pump(c);
}

/* Unless it is in doubt, the node does not name it and never will. */
static void unlisted(struct ml_core *c, enum err err)
{
    if (err_class(err) != CLASS_RETRY)
        c->ops->discard(c, c->ledger);
    back_off(c, err);
}

void ml_core_listed(struct ml_core *c, enum err err)
{
    assert(c->asked & ASKED_LIST);
    c->asked &= ~(unsigned)ASKED_LIST;
    if (err == ERR_FENCED)
        ml_core_fence(c, err);
    else if (c->state == ML_LISTING && err)
        unlisted(c, err);
    else if (c->state == ML_LISTING)
        become(c, ML_OPEN);
    pump(c);
}

void ml_core_appended(struct ml_core *c, struct ml_add *a, enum err err, int64_t entry)
{
    assert(first_of(&c->flying) == a);
    if (!err) {
        assert(list_empty(&c->returned));
        assert(entry == c->entries);
        confirm(c, a);
    } else {
        list_remove(&a->node);
        list_push_back(&c->returned, &a->node);
        c->n_returned++;
        if (err == ERR_FENCED)
            ml_core_fence(c, err);
        else if (c->state == ML_OPEN)
            become(c, ML_DRAINING);
    }
    pump(c);
}

/* The ledger may have kept more than it confirmed to us: the first of those it gave back. */
static bool kept_more(struct ml_core *c, int64_t entries)
{
    int64_t more = entries - c->entries;

    if (more < 0 || more > (int64_t)c->n_returned)
        return false;
    for (; more > 0; more--)
        confirm(c, first_of(&c->waiting));
    c->n_returned = 0;
    return true;
}

void ml_core_closed(struct ml_core *c, enum err err, int64_t entries, int64_t bytes)
{
    assert(c->asked & ASKED_CLOSE);
    c->asked &= ~(unsigned)ASKED_CLOSE;
    if (c->state == ML_CLOSING && err && c->ending && err != ERR_FENCED) {
        become(c, ML_NO_LEDGER);
    } else if (c->state == ML_CLOSING && (err || !kept_more(c, entries))) {
        ml_core_fence(c, err ? err : ERR_FENCED);
    } else if (c->state == ML_CLOSING) {
        c->bytes = bytes;
        if (entries == 0 && !c->ending)
            back_off(c, ERR_IO);
        else
            become(c, ML_NO_LEDGER);
    }
    pump(c);
}

void ml_core_woken(struct ml_core *c)
{
    if (c->state != ML_WAITING)
        return;
    become(c, ML_NO_LEDGER);
    pump(c);
}

void ml_core_fence(struct ml_core *c, enum err err)
{
    if (c->state == ML_FENCED || c->state == ML_CLOSED)
        return;
    become(c, ML_FENCED);
    discard_next(c);
    c->ops->fenced(c, err);
    pump(c);
}

bool ml_core_settled(const struct ml_core *c)
{
    return (c->state == ML_CLOSED || c->state == ML_FENCED) && c->asked == 0 &&
           list_empty(&c->flying);
}
