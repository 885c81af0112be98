#include "common/slab_pool.h"

#include <pthread.h>
#include <stdbool.h>

#include "common/mem.h"

#define SMALLEST     ((size_t)64)
#define THREAD_KEEPS ((size_t)2 << 20)
#define POOL_KEEPS   ((size_t)32 << 20)
#define LETS_GO      4 /* a quarter of what was not needed, each time */

/* Under the address sanitizer a pooled slab may not be touched: a pool would hide its misuse. */
#if defined(__SANITIZE_ADDRESS__)
#define POISONING 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISONING 1
#endif
#endif
#ifdef POISONING
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, len)   ((void)(at), (void)(len))
#define ASAN_UNPOISON_MEMORY_REGION(at, len) ((void)(at), (void)(len))
#endif

struct stack {
    struct slab *top;
    unsigned n;
    unsigned least; /* that there were since it was looked at: so many were not needed */
};

/* in_use and kept are written by their own thread only; any may read them, and a slab dropped
 * elsewhere makes single ones of in_use negative. */
struct cache {
    struct stack of[SLAB_CLASSES];
    _Atomic int64_t in_use, kept;
    unsigned age; /* the pool's when it last looked at its lists */
    struct cache *next;
};

static struct {
    pthread_mutex_t lock;
    struct stack of[SLAB_CLASSES];
    struct cache *threads;
    int64_t left_behind; /* in_use of threads that ended */
    atomic_bool lean;
    atomic_uint age;
    _Atomic uint64_t due_us; /* when it gets older */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_thread_end;
static _Thread_local struct cache *mine;

static bool is_lean(void)
{
    return atomic_load_explicit(&pool.lean, memory_order_relaxed);
}

static size_t class_size(unsigned class)
{
    return SMALLEST << class;
}

static unsigned class_of(size_t size)
{
    unsigned class = 0;
    while (class < SLAB_CLASSES && class_size(class) < size)
        class ++;
    return class;
}

static void push(struct stack *st, struct slab *s)
{
    s->next = st->top;
    st->top = s;
    st->n++;
}

static struct slab *pop(struct stack *st)
{
    struct slab *s = st->top;
    if (s) {
        st->top = s->next;
        st->n--;
        if (st->n < st->least)
            st->least = st->n;
    }
    return s;
}

static void move(struct stack *from, struct stack *to, unsigned n)
{
    while (n-- > 0 && from->n > 0)
        push(to, pop(from));
}

static unsigned fits(size_t bytes, unsigned class)
{
    size_t n = bytes / class_size(class);
    return n < 4096 ? (unsigned)n : 4096;
}

static void count(_Atomic int64_t *n, int64_t by)
{
    int64_t now = atomic_load_explicit(n, memory_order_relaxed);
    atomic_store_explicit(n, now + by, memory_order_relaxed);
}

static void count_kept(struct cache *c, unsigned class, unsigned before)
{
    count(&c->kept, ((int64_t)c->of[class].n - before) * (int64_t)class_size(class));
}

/* What the pool has no room for goes back to the system, outside the lock. */
static void hand_over(struct cache *c, unsigned class, unsigned n)
{
    const unsigned before = c->of[class].n;

    pthread_mutex_lock(&pool.lock);
    unsigned most = is_lean() ? 0 : fits(POOL_KEEPS, class);
    unsigned room = most > pool.of[class].n ? most - pool.of[class].n : 0;
    unsigned moved = n < room ? n : room;
    move(&c->of[class], &pool.of[class], moved);
    pthread_mutex_unlock(&pool.lock);
    for (; moved < n && c->of[class].n > 0; moved++)
        mem_free(pop(&c->of[class]));
    count_kept(c, class, before);
}

/* How many of it go now; what is left is watched anew. */
static unsigned surplus(struct stack *st)
{
    const unsigned n = (st->least + LETS_GO - 1) / LETS_GO;
    st->least = st->n - n;
    return n;
}

/* Others may need what this thread did not: it goes to the pool first. */
static void age_thread(struct cache *c, unsigned age)
{
    c->age = age;
    for (unsigned class = 0; class < SLAB_CLASSES; class ++)
        if (c->of[class].n > 0)
            hand_over(c, class, surplus(&c->of[class]));
}

static void end_of_thread(void *arg)
{
    struct cache *c = arg;
    for (unsigned class = 0; class < SLAB_CLASSES; class ++)
        hand_over(c, class, c->of[class].n);
    pthread_mutex_lock(&pool.lock);
    pool.left_behind += atomic_load_explicit(&c->in_use, memory_order_relaxed);
    struct cache **at = &pool.threads;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    pthread_mutex_unlock(&pool.lock);
    mem_free(c);
    mine = NULL;
}

static void make_key(void)
{
    pthread_key_create(&at_thread_end, end_of_thread);
}

static void catch_up(struct cache *c)
{
    const unsigned age = atomic_load_explicit(&pool.age, memory_order_relaxed);
    if (c->age != age)
        age_thread(c, age);
}

static struct cache *cache_mine(void)
{
    if (mine) {
        catch_up(mine);
        return mine;
    }
    pthread_once(&once, make_key);
    mine = mem_new(struct cache);
    mine->age = atomic_load_explicit(&pool.age, memory_order_relaxed);
    pthread_setspecific(at_thread_end, mine);
    pthread_mutex_lock(&pool.lock);
    mine->next = pool.threads;
    pool.threads = mine;
    pthread_mutex_unlock(&pool.lock);
    return mine;
}

static struct slab *make(size_t size, unsigned class)
{
    struct slab *s = mem_resize(NULL, sizeof *s + size);
    s->size = size;
    s->class = class;
    return s;
}

static struct slab *take_pooled(struct cache *c, unsigned class)
{
    struct stack *st = &c->of[class];
    const unsigned before = st->n;

    if (st->n == 0) {
        pthread_mutex_lock(&pool.lock);
        move(&pool.of[class], st, 1 + fits(THREAD_KEEPS, class) / 4);
        pthread_mutex_unlock(&pool.lock);
    }
    struct slab *s = pop(st);
    count_kept(c, class, before);
    if (s)
        ASAN_UNPOISON_MEMORY_REGION(s->bytes, s->size);
    return s;
}

struct slab *slab_pool_take(size_t size)
{
    struct cache *c = cache_mine();
    unsigned class = class_of(size);
    struct slab *s = class < SLAB_CLASSES ? take_pooled(c, class) : make(size, class);
    if (!s)
        s = make(class_size(class), class);
    count(&c->in_use, (int64_t)s->size);
    return s;
}

void slab_pool_give(struct slab *s)
{
    struct cache *c = cache_mine();
    count(&c->in_use, -(int64_t)s->size);
    unsigned class = s->class;
    if (class == SLAB_CLASSES) {
        mem_free(s);
        return;
    }
    ASAN_POISON_MEMORY_REGION(s->bytes, s->size);
    push(&c->of[class], s);
    count(&c->kept, (int64_t)class_size(class));
    if (is_lean())
        hand_over(c, class, c->of[class].n);
    else if (c->of[class].n > fits(THREAD_KEEPS, class))
        hand_over(c, class, c->of[class].n / 2 + 1);
}

static void let_go(struct stack *had)
{
    for (unsigned class = 0; class < SLAB_CLASSES; class ++)
        for (struct slab *s; (s = pop(&had[class]));)
            mem_free(s);
}

void slab_pool_trim(void)
{
    struct stack had[SLAB_CLASSES];
    struct cache *c = cache_mine();

    for (unsigned class = 0; class < SLAB_CLASSES; class ++)
        hand_over(c, class, c->of[class].n);
    pthread_mutex_lock(&pool.lock);
    for (unsigned class = 0; class < SLAB_CLASSES; class ++) {
        had[class] = pool.of[class];
        pool.of[class] = (struct stack){0};
    }
    pthread_mutex_unlock(&pool.lock);
    let_go(had);
}

static void age_pool(void)
{
    struct stack had[SLAB_CLASSES] = {0};

    pthread_mutex_lock(&pool.lock);
    for (unsigned class = 0; class < SLAB_CLASSES; class ++)
        move(&pool.of[class], &had[class], surplus(&pool.of[class]));
    pthread_mutex_unlock(&pool.lock);
    atomic_fetch_add_explicit(&pool.age, 1, memory_order_relaxed);
    let_go(had);
}

void slab_pool_age(uint64_t now_us)
{
    uint64_t due = atomic_load_explicit(&pool.due_us, memory_order_relaxed);

    if (now_us >= due &&
        atomic_compare_exchange_strong(&pool.due_us, &due, now_us + SLAB_POOL_AGE_US))
        age_pool();
    if (mine)
        catch_up(mine);
}

void slab_pool_lean(bool lean)
{
    atomic_store_explicit(&pool.lean, lean, memory_order_relaxed);
}

size_t slab_pool_kept(void)
{
    int64_t sum = 0;

    pthread_mutex_lock(&pool.lock);
    for (struct cache *c = pool.threads; c; c = c->next)
        sum += atomic_load_explicit(&c->kept, memory_order_relaxed);
    for (unsigned class = 0; class < SLAB_CLASSES; class ++)
        sum += (int64_t)(pool.of[class].n * class_size(class));
    pthread_mutex_unlock(&pool.lock);
    return sum > 0 ? (size_t)sum : 0;
}

size_t slab_pool_in_use(void)
{
    pthread_mutex_lock(&pool.lock);
    int64_t sum = pool.left_behind;
    for (struct cache *c = pool.threads; c; c = c->next)
        sum += atomic_load_explicit(&c->in_use, memory_order_relaxed);
    pthread_mutex_unlock(&pool.lock);
    return sum > 0 ? (size_t)sum : 0;
}
