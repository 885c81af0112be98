#include "common/mem.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAP_FROM = 1 << 20, TRIM_FROM = 8 << 20, MORE_ARENAS = 2 };

/* Set, none of them moves any more: by itself glibc raises the first two up to 32 and 64 MiB. */
void mem_setup(void)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);

    mallopt(M_MMAP_THRESHOLD, MAP_FROM);
    mallopt(M_TRIM_THRESHOLD, TRIM_FROM);
    mallopt(M_ARENA_MAX, (int)(cores > 0 ? cores : 1) + MORE_ARENAS);
}

typedef int mallctl_fn(const char *name, void *old, size_t *old_len, void *next, size_t next_len);

/* Statistics are those of the last epoch: a new one is begun first. */
static struct mem_heap heap_of_jemalloc(mallctl_fn *ctl)
{
    uint64_t epoch = 1;
    size_t used = 0, held = 0, len = sizeof(size_t);

    ctl("epoch", NULL, NULL, &epoch, sizeof(epoch));
    ctl("stats.allocated", &used, &len, NULL, 0);
    ctl("stats.resident", &held, &len, NULL, 0);
    return (struct mem_heap){.used = used, .held = held};
}

struct mem_heap mem_heap(void)
{
    mallctl_fn *ctl = NULL;

    *(void **)&ctl = dlsym(RTLD_DEFAULT, "mallctl");
    if (ctl)
        return heap_of_jemalloc(ctl);
    const struct mallinfo2 all = mallinfo2();
    return (struct mem_heap){.used = all.uordblks + all.hblkhd, .held = all.arena + all.hblkhd};
}

static void *must_have(void *p, size_t size)
{
    if (!p) {
        fprintf(stderr, "out of memory: %zu bytes\n", size);
        abort();
    }
    return p;
}

void *mem_alloc(size_t size)
{
    return must_have(calloc(1, size ? size : 1), size);
}

/* Never asks for zero bytes: realloc() would free and return NULL. */
void *mem_resize(void *p, size_t size)
{
    return must_have(realloc(p, size ? size : 1), size);
}

void mem_free(void *p)
{
    free(p);
}

char *mem_string(const char *s)
{
    return mem_string_n(s, strlen(s));
}

char *mem_string_n(const char *s, size_t len)
{
    char *copy = mem_alloc(len + 1);
    if (len > 0)
        memcpy(copy, s, len);
    return copy;
}

char *mem_format(const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (len < 0) {
        fprintf(stderr, "unprintable format: %s\n", fmt);
        abort();
    }
    char *out = mem_alloc((size_t)len + 1);
    vsnprintf(out, (size_t)len + 1, fmt, again);
    va_end(again);
    return out;
}
