#include "cli/perf_meter.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "cli/command.h"

void perf_meter_init(struct perf_meter *m)
{
    *m = (struct perf_meter){0};
    percentiles_init(&m->interval_times);
    percentiles_init(&m->times);
}

void perf_meter_drop(struct perf_meter *m)
{
    percentiles_drop(&m->interval_times);
    percentiles_drop(&m->times);
}

void perf_meter_begin(struct perf_meter *m, uint64_t now_us)
{
    m->interval = m->all = (struct perf_count){.since_us = now_us};
    percentiles_clear(&m->interval_times);
    percentiles_clear(&m->times);
    getrusage(RUSAGE_SELF, &m->usage);
}

void perf_meter_note(struct perf_meter *m, uint64_t bytes, uint64_t took_us)
{
    percentiles_note(&m->interval_times, took_us);
    m->interval.messages++;
    m->interval.bytes += bytes;
    m->ever++;
}

void perf_meter_failed(struct perf_meter *m)
{
    m->interval.failed++;
}

static void take_interval(struct perf_meter *m, uint64_t now_us)
{
    if (!m->ended_us) {
        m->all.messages += m->interval.messages;
        m->all.bytes += m->interval.bytes;
    }
    m->all.failed += m->interval.failed;
    percentiles_merge(&m->times, &m->interval_times);
    percentiles_clear(&m->interval_times);
    m->interval = (struct perf_count){.since_us = now_us};
}

void perf_meter_end(struct perf_meter *m, uint64_t now_us)
{
    struct rusage now;
    if (m->ended_us)
        return;
    take_interval(m, now_us);
    m->ended_us = now_us;
    getrusage(RUSAGE_SELF, &now);
    timersub(&now.ru_utime, &m->usage.ru_utime, &m->usage.ru_utime);
    timersub(&now.ru_stime, &m->usage.ru_stime, &m->usage.ru_stime);
    m->usage.ru_minflt = now.ru_minflt - m->usage.ru_minflt;
}

static double seconds_between(uint64_t from_us, uint64_t to_us)
{
    return to_us > from_us ? (double)(to_us - from_us) / 1e6 : 0;
}

static double ms_at(const struct percentiles *p, double q)
{
    return (double)percentiles_at(p, q) / 1e3;
}

void perf_meter_line(struct perf_meter *m, uint64_t now_us, uint64_t outstanding)
{
    const struct percentiles *t = &m->interval_times;
    double seconds = seconds_between(m->interval.since_us, now_us);
    double per_s = seconds > 0 ? 1 / seconds : 0;
    double mb = (double)m->interval.bytes * per_s / 1e6;
    printf("%.1f msg/s, %.3f MB/s, %.1f Mbit/s, outstanding %llu, failed %llu, ms: mean %.3f, "
           "50%% %.3f, 95%% %.3f, 99%% %.3f, 99.9%% %.3f, 99.99%% %.3f, max %.3f\n",
           (double)m->interval.messages * per_s, mb, mb * 8, (unsigned long long)outstanding,
           (unsigned long long)m->interval.failed, percentiles_mean(t) / 1e3, ms_at(t, 0.5),
           ms_at(t, 0.95), ms_at(t, 0.99), ms_at(t, 0.999), ms_at(t, 0.9999),
           (double)t->largest / 1e3);
    fflush(stdout);
    take_interval(m, now_us);
}

/* ---- the summary ----------------------------------------------------------------------------- */

static void add_real(struct json_object *o, const char *key, double value)
{
    char text[64];
    snprintf(text, sizeof text, "%.6g", value);
    json_object_object_add(o, key, json_object_new_double_s(value, text));
}

static void add_count(struct json_object *o, const char *key, uint64_t value)
{
    json_object_object_add(o, key, json_object_new_int64((int64_t)value));
}

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static struct json_object *times(const struct percentiles *t)
{
    struct json_object *o = json_object_new_object();
    add_real(o, "mean", percentiles_mean(t) / 1e3);
    add_real(o, "50", ms_at(t, 0.5));
    add_real(o, "95", ms_at(t, 0.95));
    add_real(o, "99", ms_at(t, 0.99));
    add_real(o, "99.9", ms_at(t, 0.999));
    add_real(o, "99.99", ms_at(t, 0.9999));
    add_real(o, "max", (double)t->largest / 1e3);
    return o;
}

static void add_setting(struct json_object *o, const struct perf_options *p)
{
    json_object_object_add(o, "command",
                           json_object_new_string(strchr(perf_command_name(p->command), ' ') + 1));
    json_object_object_add(o, "topic", json_object_new_string(p->topic));
    add_count(o, "topics", p->topics);
    if (p->command == PERF_PRODUCE) {
        add_count(o, "producers", p->topics * p->producers);
        add_count(o, "size", p->size);
    }
    add_real(o, "rate", p->rate);
}

static struct json_object *summary(const struct perf_meter *m, const struct perf_options *p,
                                   uint64_t outstanding, const char *since)
{
    struct json_object *o = json_object_new_object();
    double seconds = seconds_between(m->all.since_us, m->ended_us);
    double per_s = seconds > 0 ? 1 / seconds : 0;
    add_setting(o, p);
    add_count(o, "messages", m->all.messages);
    add_count(o, "bytes", m->all.bytes);
    add_count(o, "failed", m->all.failed);
    add_count(o, "unanswered", outstanding);
    add_count(o, "messagesEver", m->ever);
    add_real(o, "seconds", seconds);
    add_real(o, "messagesPerSecond", (double)m->all.messages * per_s);
    add_real(o, "megabytesPerSecond", (double)m->all.bytes * per_s / 1e6);
    json_object_object_add(o, "latencySince", json_object_new_string(since));
    json_object_object_add(o, "latencyMs", times(&m->times));
    add_real(o, "userCpuSeconds", seconds_of(m->usage.ru_utime));
    add_real(o, "systemCpuSeconds", seconds_of(m->usage.ru_stime));
    add_count(o, "minorPageFaults", (uint64_t)m->usage.ru_minflt);
    return o;
}

static int write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    bool fine = f && fprintf(f, "%s\n", text) > 0;
    if (f)
        fine &= fclose(f) == 0;
    if (!fine)
        fprintf(stderr, "lgm perf: %s: %s\n", path, strerror(errno));
    return fine ? EXIT_DONE : EXIT_FAILED;
}

int perf_meter_summary(struct perf_meter *m, const struct perf_options *p, uint64_t outstanding,
                       const char *times_since)
{
    take_interval(m, m->ended_us);
    struct json_object *o = summary(m, p, outstanding, times_since);
    const char *text =
        json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    int code = p->json ? write_file(p->json, text) : EXIT_DONE;
    puts(text);
    fflush(stdout);
    json_object_put(o);
    return code;
}
