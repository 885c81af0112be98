#include "broker/cluster/name_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/crc32c.h"
#include "common/mem.h"
#include "metadata/names.h"

/* ---- order ---- */

/* Of the first byte in which two texts of UTF-8 differ.  What lies above U+FFFF is two surrogates
 * in UTF-16, which come before U+E000: the bytes 0xF0.. before 0xEE and 0xEF. */
static unsigned rank(unsigned char c)
{
    return c == 0xee || c == 0xef ? c + 0x10u : c;
}

int name_order(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return (int)rank((unsigned char)*a) - (int)rank((unsigned char)*b);
}

static int compare(const void *a, const void *b)
{
    return name_order(*(const char *const *)a, *(const char *const *)b);
}

/* How many of the first n come before the name. */
static size_t place(const struct name_list *l, size_t n, const char *name)
{
    size_t low = 0;

    if (n > 0 && name_order(l->at[n - 1], name) < 0)
        return n; /* most lists come in order */
    while (low < n) {
        size_t middle = low + (n - low) / 2;
        if (name_order(l->at[middle], name) < 0)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

/* ---- lists ---- */

static void make_room(struct name_list *l, size_t n)
{
    if (l->n + n <= l->room)
        return;
    l->room = l->room * 2 > l->n + n ? l->room * 2 : l->n + n;
    l->at = mem_resize(l->at, l->room * sizeof(l->at[0]));
}

void name_list_push(struct name_list *l, const char *name)
{
    make_room(l, 1);
    l->at[l->n++] = name;
}

void name_list_sort(struct name_list *l)
{
    for (size_t i = 1; i < l->n; i++)
        if (name_order(l->at[i - 1], l->at[i]) > 0) {
            qsort(l->at, l->n, sizeof(l->at[0]), compare);
            return;
        }
}

/* From the last on, each to its place: what comes after it has been moved already. */
void name_list_merge(struct name_list *into, const struct name_list *more)
{
    size_t left = into->n;

    make_room(into, more->n);
    into->n += more->n;
    for (size_t i = more->n; i > 0; i--) {
        size_t to = place(into, left, more->at[i - 1]);
        memmove(&into->at[to + i], &into->at[to], (left - to) * sizeof(into->at[0]));
        into->at[to + i - 1] = more->at[i - 1];
        left = to;
    }
}

static void mark(struct name_list *from, const struct name_list *gone)
{
    size_t n = from->n;

    for (size_t i = gone->n; i > 0; i--) {
        n = place(from, n, gone->at[i - 1]);
        if (n < from->n && from->at[n] && name_order(from->at[n], gone->at[i - 1]) == 0)
            from->at[n] = NULL;
    }
}

void name_list_remove(struct name_list *from, const struct name_list *gone)
{
    size_t kept = 0;

    if (gone->n == 0)
        return;
    mark(from, gone);
    for (size_t i = 0; i < from->n; i++)
        if (from->at[i])
            from->at[kept++] = from->at[i];
    from->n = kept;
}

void name_list_clear(struct name_list *l)
{
    l->n = 0;
}

void name_list_drop(struct name_list *l)
{
    mem_free(l->at);
    *l = (struct name_list){0};
}

/* ---- hash ---- */

void name_hash_add(struct name_hash *h, const char *name)
{
    if (h->any)
        h->crc = crc32c_more(h->crc, ",", 1);
    h->any = true;
    h->crc = crc32c_more(h->crc, name, strlen(name));
}

void name_hash_end(const struct name_hash *h, name_hash_text into)
{
    snprintf(into, sizeof(name_hash_text), "%02x%02x%02x%02x", h->crc & 0xff, h->crc >> 8 & 0xff,
             h->crc >> 16 & 0xff, h->crc >> 24);
}

/* ---- what is not for users ---- */

static bool is(const char *text, size_t len, const char *wanted)
{
    return len == strlen(wanted) && memcmp(text, wanted, len) == 0;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_system_local(const char *local, size_t len)
{
    static const char *const events[] = {"__change_events", "__transaction_buffer_snapshot",
                                         "__transaction_buffer_snapshot_indexes",
                                         "__transaction_buffer_snapshot_segments"};
    static const char pending[] = "__transaction_pending_ack";
    const size_t tail = sizeof(pending) - 1;

    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        if (is(local, len, events[i]))
            return true;
    return len >= tail && memcmp(local + len - tail, pending, tail) == 0;
}

bool name_is_system(const char *full)
{
    const char *local = strrchr(full, '/');

    local = local ? local + 1 : full;
    return begins(full, "persistent://pulsar/system/transaction_coordinator_assign") ||
           begins(full, "persistent://pulsar/system/__transaction_log_") ||
           is_system_local(local, topic_name_base_len(local));
}
