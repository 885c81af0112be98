/* Who may produce on a topic: stories of the four modes, then many at random. */
#include "broker/topic/access.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/rng.h"
#include "tests/lib/suite.h"

enum { SEATS = 8 };

static struct access a;
static struct access_seat seats[SEATS];
static char told[4096];
static bool slow; /* stores are answered by the test */

static char name_of(const struct access_seat *s)
{
    return (char)('a' + (s - seats));
}

static void tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void tell(const char *fmt, ...)
{
    size_t len = strlen(told);
    va_list args;

    va_start(args, fmt);
    vsnprintf(told + len, sizeof(told) - len, fmt, args);
    va_end(args);
}

static void do_admit(struct access *x, struct access_seat *s, int64_t epoch)
{
    (void)x;
    if (epoch == ACCESS_NO_EPOCH)
        tell(" +%c", name_of(s));
    else
        tell(" +%c@%lld", name_of(s), (long long)epoch);
}

static void do_queue(struct access *x, struct access_seat *s)
{
    (void)x;
    tell(" queue %c", name_of(s));
}

static void do_refuse(struct access *x, struct access_seat *s, enum err err, const char *why)
{
    (void)x;
    ck_assert_ptr_nonnull(why);
    tell(" %c: %s", name_of(s),
         err == ERR_PRODUCER_FENCED ? "fenced"
         : err == ERR_PRODUCER_BUSY ? "busy"
                                    : err_name(err));
}

static void do_send_away(struct access *x, struct access_seat *s)
{
    (void)x;
    tell(" go %c", name_of(s));
}

static void do_store(struct access *x, int64_t epoch)
{
    (void)x;
    tell(" store %lld", (long long)epoch);
}

static const struct access_fx fx = {.admit = do_admit,
                                    .queue = do_queue,
                                    .refuse = do_refuse,
                                    .send_away = do_send_away,
                                    .store = do_store};

static struct access_seat *seat(char name)
{
    return &seats[name - 'a'];
}

static void store_all(void)
{
    while (!slow && a.storing != ACCESS_NO_EPOCH)
        access_stored(&a, ERR_OK);
}

static void ask(char name, enum access_mode mode, int64_t epoch)
{
    *seat(name) = (struct access_seat){.mode = mode, .epoch = epoch};
    access_ask(&a, seat(name));
    store_all();
}

/* "Sa Eb5 -a": a asks for S(hared), E(xclusive), W(ait) or F(ence), with an epoch; or leaves;
 * "ok", "io": the store is answered; "shut". */
static void play(const char *script)
{
    static const char modes[] = "SEWF";
    char words[256], *rest, *w;

    snprintf(words, sizeof(words), "%s", script);
    for (w = strtok_r(words, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
        const char *mode = strchr(modes, w[0]);
        if (strcmp(w, "ok") == 0)
            access_stored(&a, ERR_OK);
        else if (strcmp(w, "io") == 0)
            access_stored(&a, ERR_IO);
        else if (strcmp(w, "shut") == 0)
            access_shut(&a, ERR_NOT_READY, "closing");
        else if (w[0] == '-')
            access_leave(&a, seat(w[1]));
        else
            ask(w[1], (enum access_mode)(mode - modes), w[2] ? w[2] - '0' : ACCESS_NO_EPOCH);
        store_all();
    }
}

static const struct {
    const char *script, *tells;
    bool slow;
} stories[] = {
    {"Sa Sb -a Sc", " +a +b +c", false},
    /* exclusive */
    {"Ea -a Eb", " store 0 +a@0 store 1 +b@1", false},
    {"Ea Eb", " store 0 +a@0 b: fenced", false},
    {"Sa Eb -a Eb", " +a b: fenced store 0 +b@0", false},
    {"Ea Sb -a Sb", " store 0 +a@0 b: busy +b", false},
    {"Ea Sb Ec Wd ok", " store 0 b: busy c: fenced queue d +a@0", true},
    /* epochs of those who come back */
    {"Ea -a Ea0", " store 0 +a@0 +a@0", false},
    {"Ea -a Eb -b Ea0", " store 0 +a@0 store 1 +b@1 a: fenced", false},
    {"Ea -a Eb -b Wa0 Fa0 Fb1", " store 0 +a@0 store 1 +b@1 a: fenced a: fenced +b@1", false},
    {"Ea7 -a Eb", " store 7 +a@7 store 8 +b@8", false},
    {"Ea -a Sb0", " store 0 +a@0 +b", false},
    /* waiting */
    {"Wa", " store 0 +a@0", false},
    {"Ea Wb Wc -a -b", " store 0 +a@0 queue b queue c store 1 +b@1 store 2 +c@2", false},
    {"Sa Sb Wc Sd -a -b", " +a +b queue c d: busy store 0 +c@0", false},
    {"Ea Wb Wc -b -a", " store 0 +a@0 queue b queue c store 1 +c@1", false},
    {"Ea Wb Ec Sd", " store 0 +a@0 queue b c: fenced d: busy", false},
    {"Ea Wb0 -a", " store 0 +a@0 queue b store 1 +b@1", false},
    /* fencing */
    {"Fa", " store 0 +a@0", false},
    {"Sa Sb Fc -a -b", " +a +b go a go b store 0 +c@0", false},
    {"Ea Wb Wc Fd -a", " store 0 +a@0 queue b queue c b: fenced c: fenced go a store 1 +d@1",
     false},
    {"Ea Fb Fc -a", " store 0 +a@0 go a b: fenced go a store 1 +c@1", false},
    {"Ea Fb Wc -a -b", " store 0 +a@0 go a queue c store 1 +b@1 store 2 +c@2", false},
    {"Sa Fb -b -a Sc", " +a go a +c", false},
    {"Ea Fb ok", " store 0 a: fenced store 1", true},
    /* while the epoch is being stored */
    {"Ea -a ok Eb ok", " store 0 store 1 +b@1", true},
    {"Ea Wb -a ok ok", " store 0 queue b store 1 +b@1", true},
    {"Ea io Eb ok", " store 0 a: IO store 0 +b@0", true},
    {"Ea Wb io ok", " store 0 queue b a: IO store 0 +b@0", true},
    {"Ea Wb Wc io io io", " store 0 queue b queue c a: IO store 0 b: IO store 0 c: IO", true},
    {"Ea -a Eb0 ok", " store 0 +b@0", true},
    /* the end */
    {"Sa Sb shut -a Sc", " +a +b go a go b c: NOT_READY", false},
    {"Ea Wb Wc shut -a Fd",
     " store 0 +a@0 queue b queue c b: NOT_READY c: NOT_READY go a d: NOT_READY", false},
    {"Ea shut ok", " store 0 a: NOT_READY", true},
    {"Sa Fb shut -a", " +a go a b: NOT_READY go a", false},
};

static void begin(int64_t epoch, bool slowly)
{
    told[0] = '\0';
    slow = slowly;
    access_init(&a, &fx, epoch);
}

START_TEST(stories_of_the_modes)
{
    begin(ACCESS_NO_EPOCH, stories[_i].slow);
    play(stories[_i].script);
    ck_assert_str_eq(told, stories[_i].tells);
}
END_TEST

START_TEST(a_stored_epoch_goes_on)
{
    begin(access_epoch_of("41"), false);
    play("Ea");
    ck_assert_str_eq(told, " store 42 +a@42");
    ck_assert_int_eq(access_epoch_of(NULL), ACCESS_NO_EPOCH);
    ck_assert_int_eq(access_epoch_of("x"), ACCESS_BAD_EPOCH);
    ck_assert_int_eq(access_epoch_of(""), ACCESS_BAD_EPOCH);
    ck_assert_int_eq(access_epoch_of("18446744073709551615"), ACCESS_BAD_EPOCH);
    begin(ACCESS_BAD_EPOCH, false);
    play("Ea Sb");
    ck_assert_str_eq(told, " a: MALFORMED +b");
    begin(ACCESS_NO_EPOCH, false);
    ask('a', ACCESS_EXCLUSIVE, INT64_MAX);
    ck_assert_str_eq(told, " a: NOT_ALLOWED");
}
END_TEST

START_TEST(the_queue_has_an_end)
{
    static struct access_seat many[ACCESS_WAITERS_MAX];

    begin(ACCESS_NO_EPOCH, false);
    play("Sa");
    for (unsigned i = 0; i < ACCESS_WAITERS_MAX; i++) {
        many[i] = (struct access_seat){.mode = ACCESS_WAIT, .epoch = ACCESS_NO_EPOCH};
        access_ask(&a, &many[i]);
        told[0] = '\0';
    }
    play("Wb");
    ck_assert_str_eq(told, " b: busy");
    access_leave(&a, &many[7]);
    play("Wb");
    ck_assert_str_eq(told, " b: busy queue b");
}
END_TEST

/* ---- at random ---- */

enum state { OUT, ASKED, QUEUED, IN_SHARED, IN_ALONE, LEAVING };

static struct model {
    enum state state[SEATS];
    char queue[SEATS + 1]; /* names, in order */
    int64_t last, durable, storing;
} m;

static int count(enum state s)
{
    int n = 0;
    for (int i = 0; i < SEATS; i++)
        n += m.state[i] == s;
    return n;
}

static void unqueue(char name)
{
    char *at = strchr(m.queue, name);
    if (at)
        memmove(at, at + 1, strlen(at));
}

static void sees_admit(struct access *x, struct access_seat *s, int64_t epoch)
{
    const int i = (int)(s - seats);

    (void)x;
    if (epoch == ACCESS_NO_EPOCH) {
        ck_assert(s->mode == ACCESS_SHARED && m.state[i] == ASKED);
        ck_assert_int_eq(count(IN_ALONE) + count(QUEUED), 0);
        m.state[i] = IN_SHARED;
        return;
    }
    ck_assert_int_eq(count(IN_ALONE) + count(IN_SHARED) + count(LEAVING), 0);
    ck_assert_int_eq(epoch, m.durable);
    ck_assert(s->epoch == m.last ? epoch >= m.last : epoch > m.last);
    if (m.state[i] == QUEUED) {
        ck_assert_int_eq(m.queue[0], name_of(s));
        ck_assert_int_gt(epoch, m.last);
        unqueue(name_of(s));
    }
    m.state[i] = IN_ALONE;
    m.last = epoch;
}

static void sees_queue(struct access *x, struct access_seat *s)
{
    (void)x;
    ck_assert(s->mode == ACCESS_WAIT && m.state[s - seats] == ASKED);
    m.queue[strlen(m.queue) + 1] = '\0';
    m.queue[strlen(m.queue)] = name_of(s);
    m.state[s - seats] = QUEUED;
}

static void sees_refuse(struct access *x, struct access_seat *s, enum err err, const char *why)
{
    (void)x;
    (void)why;
    ck_assert(err != ERR_OK);
    ck_assert(m.state[s - seats] == ASKED || m.state[s - seats] == QUEUED);
    unqueue(name_of(s));
    m.state[s - seats] = OUT;
}

static void sees_send_away(struct access *x, struct access_seat *s)
{
    enum state *now = &m.state[s - seats];

    (void)x;
    ck_assert(*now == IN_SHARED || *now == IN_ALONE || *now == LEAVING);
    *now = LEAVING;
}

static void sees_store(struct access *x, int64_t epoch)
{
    (void)x;
    ck_assert_int_gt(epoch, m.durable);
    ck_assert_int_eq(m.storing, ACCESS_NO_EPOCH);
    m.storing = epoch;
}

static const struct access_fx model_fx = {.admit = sees_admit,
                                          .queue = sees_queue,
                                          .refuse = sees_refuse,
                                          .send_away = sees_send_away,
                                          .store = sees_store};

static void random_store(uint64_t *seed)
{
    const bool fails = rng_below(seed, 8) == 0;
    const int64_t epoch = m.storing;

    if (epoch == ACCESS_NO_EPOCH)
        return;
    m.storing = ACCESS_NO_EPOCH;
    if (!fails)
        m.durable = epoch;
    access_stored(&a, fails ? ERR_IO : ERR_OK);
}

static void random_event(uint64_t *seed)
{
    const int i = (int)rng_below(seed, SEATS);

    if (rng_below(seed, 3) == 0) {
        random_store(seed);
    } else if (m.state[i] == OUT) {
        seats[i].mode = (enum access_mode)rng_below(seed, 4);
        seats[i].epoch = m.last - (int64_t)rng_below(seed, 3);
        if (seats[i].epoch < 0 || rng_below(seed, 2) == 0)
            seats[i].epoch = ACCESS_NO_EPOCH;
        m.state[i] = ASKED;
        access_ask(&a, &seats[i]);
    } else {
        unqueue(name_of(&seats[i]));
        m.state[i] = OUT;
        access_leave(&a, &seats[i]);
    }
}

/* Once all who are told to go do, and stores end, nobody is left without an answer. */
static void settle(void)
{
    for (int round = 0; round < 4 * SEATS; round++) {
        if (m.storing != ACCESS_NO_EPOCH) {
            m.durable = m.storing;
            m.storing = ACCESS_NO_EPOCH;
            access_stored(&a, ERR_OK);
        }
        for (int i = 0; i < SEATS; i++) {
            if (m.state[i] == LEAVING) {
                m.state[i] = OUT;
                access_leave(&a, &seats[i]);
            }
        }
    }
    ck_assert_int_eq(count(ASKED), 0);
    ck_assert(count(QUEUED) == 0 || count(IN_ALONE) + count(IN_SHARED) > 0);
}

START_TEST(at_random)
{
    const uint64_t seed = rng_seed();

    fprintf(stderr, "access: seed %llu\n", (unsigned long long)seed);
    for (unsigned run = 0; run < 2000; run++) {
        uint64_t s = seed + run;
        m = (struct model){
            .last = ACCESS_NO_EPOCH, .durable = ACCESS_NO_EPOCH, .storing = ACCESS_NO_EPOCH};
        access_init(&a, &model_fx, ACCESS_NO_EPOCH);
        for (unsigned n = 0; n < 200; n++)
            random_event(&s);
        settle();
    }
}
END_TEST

int main(void)
{
    return suite_run("access",
                     (suite_case[]){
                         SUITE_LOOP(stories_of_the_modes, sizeof(stories) / sizeof(stories[0])),
                         SUITE_CASE(a_stored_epoch_goes_on),
                         SUITE_CASE(the_queue_has_an_end),
                         SUITE_CASE(at_random),
                         {0},
                     });
}
