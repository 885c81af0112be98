/* A bookie fails under a ledger that is written: over real sockets, with a metadata store that is
 * away or unsure. */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "metadata/paths.h"
#include "metadata/records.h"
#include "tests/lib/suite.h"
#include "tests/unit/ledger/house.h"

static void turn_down_adds(struct fake_bookie_knobs *k)
{
    k->on_add = (struct fault){.times = 1000000};
    k->add_status = BOOKIE_EIO;
}

static void turn_down_some(struct fake_bookie_knobs *k)
{
    k->on_add = (struct fault){.times = 3};
    k->add_status = BOOKIE_EIO;
}

static void go_mute(struct fake_bookie_knobs *k)
{
    k->mute = true;
}

static void do_deaf(void *ctx)
{
    fake_bookie_deaf(ctx);
}

static Bookkeeper__LedgerMetadataFormat *record_of(int64_t id)
{
    Bookkeeper__LedgerMetadataFormat *r;
    char path[META_KEY_MAX];
    struct slice value;
    int64_t version;

    ck_assert(path_ledger(id, path) == ERR_OK);
    ck_assert(meta_get_wait(house.meta, path, &value, &version) == ERR_OK);
    ck_assert(ledger_record_read(slice_view(value), &r) == ERR_OK);
    slice_drop(&value);
    return r;
}

static size_t fragments_of(int64_t id)
{
    Bookkeeper__LedgerMetadataFormat *r = record_of(id);
    size_t n = r->n_segment;

    bookkeeper__ledger_metadata_format__free_unpacked(r, NULL);
    return n;
}

static unsigned one_without(int64_t id, entry_id e)
{
    unsigned i = 0;

    while (i < house.n && fake_bookie_has(house.bookie[i], id, e))
        i++;
    return i;
}

static unsigned one_with(int64_t id, entry_id e)
{
    unsigned i = 0;

    while (i < house.n && !fake_bookie_has(house.bookie[i], id, e))
        i++;
    return i;
}

static void all_are_stored(unsigned n)
{
    ck_assert_uint_eq(house_batch.accepted, n);
    house_await(n);
    for (unsigned i = 0; i < n; i++) {
        ck_assert_str_eq(err_name(house_batch.err[i]), "OK");
        ck_assert_uint_eq(house_batch.order[i], i);
    }
}

/* One entry, so that the ensemble can be told. */
static void first_entry(struct ledger *l)
{
    house_appended(l, 1);
}

START_TEST(replaced_by_a_spare)
{
    struct ledger *l;

    house_open(4);
    l = house_create(3, 3, 3);
    int64_t id = ledger_id(l);
    first_entry(l);
    unsigned spare = one_without(id, 0);
    house_knob(turn_down_adds, (spare + 1) % 4);
    house_append(l, 100);
    all_are_stored(100);
    for (entry_id e = 1; e <= 100; e++)
        ck_assert(fake_bookie_has(house.bookie[spare], id, e));
    ck_assert_uint_eq(house_counts(changes), 1);
    ck_assert_uint_eq(house_counts(lacking), 0);
    ck_assert_uint_eq(fragments_of(id), 2);
    ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
    ck_assert_uint_eq(fragments_of(id), 2);
    ck_assert_str_eq(err_name(house_open_ledger(id, LEDGER_OPEN_READ, &l)), "OK");
    ck_assert_int_eq(ledger_last_confirmed(l), 100);
    house_drop(&l);
    house_close();
}
END_TEST

/* Before anything was confirmed: the first fragment is put in the first one's place. */
START_TEST(replaced_before_the_first_entry)
{
    struct ledger *l;

    house_open(4);
    house_knob(turn_down_adds, 0);
    for (unsigned tries = 0; house_counts(changes) == 0; tries++) {
        ck_assert_uint_lt(tries, 100);
        l = house_create(3, 3, 3);
        int64_t id = ledger_id(l);
        house_append(l, 20);
        all_are_stored(20);
        ck_assert_uint_eq(fragments_of(id), 1);
        ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
        ck_assert_str_eq(err_name(house_open_ledger(id, LEDGER_OPEN_READ, &l)), "OK");
        house_reads_all(l, 20);
        house_drop(&l);
    }
    house_close();
}
END_TEST

/* Dead in the middle of a stream of entries; what it had of them is read elsewhere. */
START_TEST(dead_bookie_is_replaced)
{
    struct ledger *l;

    house_open(5);
    l = house_create(3, 2, 2);
    int64_t id = ledger_id(l);
    house_append(l, 150);
    house_call(do_deaf, house.bookie[one_with(id, 0) % 5]);
    all_are_stored(150);
    house_reads_all(l, 150); /* by the writer's own handle, over both fragments */
    ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
    ck_assert_str_eq(err_name(house_open_ledger(id, LEDGER_OPEN_READ, &l)), "OK");
    house_reads_all(l, 150);
    house_drop(&l);
    house_close();
}
END_TEST

/* The store goes away, or does not know what it did, at the n-th call of a change. */
START_TEST(changed_through_a_shaky_store)
{
    for (unsigned n = 0; n < 8; n++) {
        struct ledger *l;
        house_open(4);
        l = house_create(3, 3, 3);
        int64_t id = ledger_id(l);
        first_entry(l);
        house_knob(turn_down_adds, (one_without(id, 0) + 1) % 4);
        house.shaky->away = (struct fault){.after = n % 4, .times = n % 3};
        if (n % 2)
            house.shaky->unsure = (struct fault){.times = 1 + n / 4};
        else
            house.shaky->forgotten = (struct fault){.times = 1 + n / 4};
        house_append(l, 50);
        all_are_stored(50);
        house.shaky->away = house.shaky->unsure = house.shaky->forgotten = (struct fault){0};
        ck_assert_uint_eq(fragments_of(id), 2);
        ck_assert_uint_eq(house_counts(changes), 1);
        ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
        house_close();
    }
}
END_TEST

/* Closed and dropped while the store keeps a change waiting. */
START_TEST(closed_in_the_middle_of_a_change)
{
    for (unsigned n = 0; n < 2; n++) {
        struct ledger *l;
        house_open(4);
        l = house_create(3, 3, 3);
        int64_t id = ledger_id(l);
        first_entry(l);
        house_knob(turn_down_adds, (one_without(id, 0) + 1) % 4);
        house.shaky->away = (struct fault){.times = n ? 1000000 : 2};
        house_append(l, 5);
        if (n) {
            house_drop(&l);
        } else {
            house.seen += 5; /* the appends fail before it is closed */
            ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
            for (unsigned i = 0; i < 5; i++)
                ck_assert_str_eq(err_name(house_batch.err[i]), "CLOSED");
        }
        house.shaky->away = (struct fault){0};
        if (n == 0) {
            Bookkeeper__LedgerMetadataFormat *r = record_of(id);
            ck_assert_int_eq(r->lastentryid, 0);
            bookkeeper__ledger_metadata_format__free_unpacked(r, NULL);
        }
        for (unsigned i = 0; n && i < 5; i++)
            chain_drop(&house_batch.append[i].payload);
        house_close();
    }
}
END_TEST

/* Another owner has marked the ledger, and its bookies do not know yet: the change finds out. */
START_TEST(fenced_by_the_metadata_alone)
{
    struct ledger *l;
    char path[META_KEY_MAX];

    house_open(4);
    l = house_create(3, 3, 2);
    int64_t id = ledger_id(l);
    first_entry(l);
    Bookkeeper__LedgerMetadataFormat *r = record_of(id);
    r->state = BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__IN_RECOVERY;
    ck_assert(path_ledger(id, path) == ERR_OK);
    ck_assert(meta_put_wait(house.meta, path, ledger_record_write(r), META_ANY) == ERR_OK);
    bookkeeper__ledger_metadata_format__free_unpacked(r, NULL);
    house_knob(turn_down_adds, (one_without(id, 0) + 1) % 4);
    do { /* the two others are enough until the third one has failed */
        house_append(l, 1);
        if (!house_batch.refused)
            house_await(1);
    } while (!house_batch.refused && house_batch.err[0] == ERR_OK);
    ck_assert(house_batch.refused == ERR_FENCED || house_batch.err[0] == ERR_FENCED);
    ck_assert_str_eq(err_name(house_close_ledger(&l)), "FENCED");
    house_close();
}
END_TEST

/* Nobody is there to take its place: two of three go on, and it joins again by itself. */
START_TEST(does_without_and_takes_it_back)
{
    struct ledger *l;

    house_open(3);
    l = house_create(3, 3, 2);
    int64_t id = ledger_id(l);
    house_knob(turn_down_some, 1);
    while (house_counts(lacking) == 0) {
        house_append(l, 1);
        all_are_stored(1);
    }
    while (house_counts(lacking) > 0) {
        house_append(l, 1);
        all_are_stored(1);
    }
    ck_assert_uint_eq(house_counts(changes), 0);
    ck_assert_uint_eq(fragments_of(id), 1);
    ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
    house_close();
}
END_TEST

/* ... or another comes: the moment that it says so it takes the place. */
START_TEST(takes_a_newcomer)
{
    struct ledger *l;

    house.hidden = 1;
    house_open(4);
    l = house_create(3, 3, 2);
    int64_t id = ledger_id(l);
    house_knob(turn_down_adds, 1);
    while (house_counts(lacking) == 0) {
        house_append(l, 1);
        all_are_stored(1);
    }
    house_register(3);
    while (house_counts(changes) == 0) {
        house_append(l, 1);
        all_are_stored(1);
    }
    ck_assert_uint_eq(house_counts(lacking), 0);
    ck_assert_uint_eq(fragments_of(id), 2);
    house_append(l, 10);
    all_are_stored(10);
    ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
    house_close();
}
END_TEST

/* Bytes that one bookie does not answer are bounded: it is replaced before its time is over. */
START_TEST(frozen_bookie_holds_so_much_only)
{
    struct ledger *l;

    house.conf.link_bytes = 50 * 1024;
    house_open(4);
    l = house_create(3, 3, 2);
    int64_t id = ledger_id(l);
    first_entry(l);
    unsigned spare = one_without(id, 0);
    house_knob(go_mute, (spare + 1) % 4);
    for (unsigned i = 0; house_counts(changes) == 0; i++) {
        ck_assert_uint_lt(i, 300); /* at 512 bytes and more each */
        house_append(l, 1);
        all_are_stored(1);
    }
    house_append(l, 1);
    all_are_stored(1);
    ck_assert_uint_eq(fragments_of(id), 2);
    ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
    house_close();
}
END_TEST

/* A bookie that has just failed gets no new ledger as long as there are others. */
START_TEST(failed_bookies_are_avoided)
{
    struct ledger *l;

    house_open(5);
    house_knob(turn_down_adds, 2);
    while (house_counts(changes) == 0) {
        l = house_create(2, 2, 2);
        house_append(l, 1);
        all_are_stored(1);
        ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
    }
    for (unsigned i = 0; i < 30; i++) {
        l = house_create(4, 4, 4);
        int64_t id = ledger_id(l);
        house_append(l, 1);
        all_are_stored(1);
        ck_assert(!fake_bookie_has(house.bookie[2], id, 0));
        ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
    }
    ck_assert_uint_eq(house_counts(changes), 1);
    house_close();
}
END_TEST

/* All fake bookies are one host. */
START_TEST(one_host_is_not_enough)
{
    enum err err;

    house.conf.place.distinct_hosts = true;
    house.expected = 1;
    house_open(3);
    struct ledger *l = house_create_above((struct quorum){2, 2, 2}, -1, &err);
    ck_assert_str_eq(err_name(err), "NOT_ENOUGH_BOOKIES");
    ck_assert_ptr_null(l);
    house_close();
}
END_TEST

static void say_racks(unsigned n)
{
    struct slab *s = slab_new(4096);
    char *text = (char *)slab_bytes(s);
    size_t at = 0;

    at += (size_t)snprintf(text, 4096, "{\"default\":{");
    for (unsigned i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, 4096 - at, "%s\"%s\":{\"rack\":\"/rack%u\"}",
                               i ? "," : "", fake_bookie_id(house.bookie[i]), i == 0);
    at += (size_t)snprintf(text + at, 4096 - at, "}}");
    ck_assert(meta_put_wait(house.meta, PATH_BOOKIE_RACKS, slice_take(&s, at), META_ANY) == ERR_OK);
}

/* As /bookies says, as soon as it says it: the first one has a rack of its own, so it is always
 * one of two. */
START_TEST(racks_are_heard_of)
{
    struct ledger *l;
    unsigned in_a_row = 0;

    house.conf.place.racks = true;
    house.conf.place.racks_min = 2;
    house_open(4);
    say_racks(4);
    for (unsigned i = 0; in_a_row < 20; i++) {
        ck_assert_uint_lt(i, 1000);
        l = house_create(2, 2, 2);
        int64_t id = ledger_id(l);
        house_append(l, 1);
        all_are_stored(1);
        in_a_row = fake_bookie_has(house.bookie[0], id, 0) ? in_a_row + 1 : 0;
        ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
    }
    house_close();
}
END_TEST

/* 0 and 1 gold, 2 silver, 3 in another group, 4 in none. */
static void say_groups(void)
{
    struct slab *s = slab_new(4096);
    static const char *const groups[] = {"gold", "silver", "other"};
    char *text = (char *)slab_bytes(s);
    size_t at = 0;

    for (unsigned i = 0; i < 3; i++) {
        at += (size_t)snprintf(text + at, 4096 - at, "%s\"%s\":{\"%s\":{\"rack\":\"/r\"}",
                               i ? "}," : "{", groups[i],
                               fake_bookie_id(house.bookie[i ? i + 1 : 0]));
        if (i == 0)
            at += (size_t)snprintf(text + at, 4096 - at, ",\"%s\":{\"rack\":\"/r\"}",
                                   fake_bookie_id(house.bookie[1]));
    }
    at += (size_t)snprintf(text + at, 4096 - at, "}}");
    ck_assert(meta_put_wait(house.meta, PATH_BOOKIE_RACKS, slice_take(&s, at), META_ABSENT) ==
              ERR_OK);
}

static unsigned who_has(int64_t id)
{
    unsigned at = 0;

    for (unsigned k = 0; k < house.n; k++)
        at |= (unsigned)fake_bookie_has(house.bookie[k], id, 0) << k;
    return at;
}

/* As soon as the groups are known; until then there may be nobody in them. */
static struct ledger *create_in(unsigned e, unsigned only, int64_t *id)
{
    enum err err;

    for (unsigned i = 0;; i++) {
        ck_assert_uint_lt(i, 10000);
        struct ledger *l = house_create_above((struct quorum){e, e, e}, -1, &err);
        if (err)
            continue;
        *id = ledger_id(l);
        house_append(l, 1);
        all_are_stored(1);
        if (who_has(*id) == only)
            return l;
        ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
    }
}

/* Of the second group only what the first does not have; not even for a failed one is another
 * taken, and one that wishes for none gets none of any group. */
START_TEST(kept_in_its_groups)
{
    enum err err;
    int64_t id;

    house_open(5);
    house.groups = "gold";
    house.second_groups = "silver";
    say_groups();
    struct ledger *l = create_in(2, 3, &id);
    house_knob(turn_down_adds, 1);
    house_append(l, 20);
    all_are_stored(20);
    ck_assert(fake_bookie_has(house.bookie[2], id, 20)); /* the second one's */
    house_drop(&l);
    l = house_create(2, 2, 1);
    id = ledger_id(l);
    house_knob(turn_down_adds, 2);
    house_append(l, 40);
    all_are_stored(40);
    for (entry_id e = 0; e < 40; e++)
        ck_assert(!fake_bookie_has(house.bookie[3], id, e) &&
                  !fake_bookie_has(house.bookie[4], id, e));
    house_drop(&l);
    house.second_groups = "";
    ck_assert_ptr_null(house_create_above((struct quorum){3, 3, 2}, -1, &err));
    ck_assert_str_eq(err_name(err), "NOT_ENOUGH_BOOKIES");
    house.groups = "";
    for (unsigned i = 0; i < 10; i++) {
        l = create_in(1, 1 << 4, &id);
        house_drop(&l);
    }
    house.groups = "*";
    l = house_create(3, 3, 2);
    house_drop(&l);
    house_close();
}
END_TEST

static void have_much(struct fake_bookie_knobs *k)
{
    k->free_space = 1ull << 40;
}

static void have_little(struct fake_bookie_knobs *k)
{
    k->free_space = 1 << 20;
}

/* Asked until they say it. */
START_TEST(space_is_asked_for)
{
    unsigned in_a_row = 0;

    house.conf.place.by_free_space = true;
    house.conf.place.space_look_us = 1000000;
    house.conf.place.space_retry_us = 10000;
    house_open(2);
    house_knob(have_much, 0);
    house_knob(have_little, 1);
    for (unsigned i = 0; in_a_row < 20; i++) {
        ck_assert_uint_lt(i, 2000);
        struct ledger *l = house_create(1, 1, 1);
        int64_t id = ledger_id(l);
        house_append(l, 1);
        all_are_stored(1);
        in_a_row = fake_bookie_has(house.bookie[0], id, 0) ? in_a_row + 1 : 0;
        ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
    }
    house_close();
}
END_TEST

int main(void)
{
    return suite_run("ensemble", (suite_case[]){SUITE_CASE(replaced_by_a_spare),
                                                SUITE_CASE(replaced_before_the_first_entry),
                                                SUITE_CASE(dead_bookie_is_replaced),
                                                SUITE_CASE(changed_through_a_shaky_store),
                                                SUITE_CASE(closed_in_the_middle_of_a_change),
                                                SUITE_CASE(fenced_by_the_metadata_alone),
                                                SUITE_CASE(does_without_and_takes_it_back),
                                                SUITE_CASE(takes_a_newcomer),
                                                SUITE_CASE(frozen_bookie_holds_so_much_only),
                                                SUITE_CASE(failed_bookies_are_avoided),
                                                SUITE_CASE(one_host_is_not_enough),
                                                SUITE_CASE(racks_are_heard_of),
                                                SUITE_CASE(kept_in_its_groups),
                                                SUITE_CASE(space_is_asked_for),
                                                {0}});
}
