#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bench/ceiling/ceiling.h"

uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void die(const char *what)
{
    fprintf(stderr, "ceiling: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static struct usage usage_now(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (struct usage){.user_s = seconds(r.ru_utime),
                          .system_s = seconds(r.ru_stime),
                          .minor_faults = (uint64_t)r.ru_minflt,
                          .switches = (uint64_t)(r.ru_nvcsw + r.ru_nivcsw)};
}

void account_open(struct account *a, struct shared *s, unsigned place, const char *name)
{
    *a = (struct account){.shared = s, .result = &s->results[place]};
    snprintf(a->result->name, sizeof a->result->name, "%s", name);
}

void account_ready(struct account *a)
{
    a->base = usage_now();
    a->shared->ready++;
}

void account_warm(struct account *a)
{
    a->base = usage_now();
    a->result->entries = 0;
    a->is_warm = true;
}

void account_times(struct account *a, const struct percentiles *p)
{
    a->result->times = (struct quantiles){.mean = percentiles_mean(p),
                                          .p50 = (double)percentiles_at(p, 0.5),
                                          .p95 = (double)percentiles_at(p, 0.95),
                                          .p99 = (double)percentiles_at(p, 0.99),
                                          .p999 = (double)percentiles_at(p, 0.999),
                                          .p9999 = (double)percentiles_at(p, 0.9999),
                                          .max = (double)p->largest};
}

void account_close(struct account *a)
{
    const struct usage now = usage_now();
    struct result *r = a->result;
    r->user_s = now.user_s - a->base.user_s;
    r->system_s = now.system_s - a->base.system_s;
    r->minor_faults = now.minor_faults - a->base.minor_faults;
    r->switches = now.switches - a->base.switches;
    _exit(EXIT_SUCCESS);
}
