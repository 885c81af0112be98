/* ceiling - what this machine could do at best; see ceiling.h. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/ceiling/ceiling.h"
#include "bench/ceiling/wire.h"
#include "common/parse.h"

enum { GRACE_S = 60 };

static const char help[] =
    "usage: ceiling [OPTION]...\n"
    "A bare pipeline of LGM's shape: producer, relay, three sinks that sync, consumer.\n\n"
    "  -b N        messages an entry (100)\n"
    "  -s BYTES    of a message (1024)\n"
    "  -q N        write quorum (2)\n"
    "  -a N        ack quorum (2)\n"
    "  -w N        entries in flight (64)\n"
    "  -r N        entries a second; 0: as many as go (0)\n"
    "  -t SECONDS  (4)\n"
    "  -W SECONDS  before that, and not counted (1)\n"
    "  -n          sinks write nothing\n"
    "  -e          sinks write no entry log\n"
    "  -c          no consumer\n"
    "  -d DIR      where the sinks' files are (.)\n\n"
    "The last line is JSON.\n";

static bool take(struct options *o, int option, const char *text)
{
    switch (option) {
    case 'b':
        return !parse_u64(text, &o->batch) && o->batch > 0;
    case 's':
        return !parse_u64(text, &o->size) && o->size > 0;
    case 'q':
        return !parse_u64(text, &o->write_quorum) && o->write_quorum >= 1 &&
               o->write_quorum <= SINKS;
    case 'a':
        return !parse_u64(text, &o->ack_quorum) && o->ack_quorum >= 1;
    case 'w':
        return !parse_u64(text, &o->window) && o->window >= 1 && o->window <= 100000;
    case 'r':
        return !parse_double(text, &o->rate) && o->rate >= 0;
    case 't':
        return !parse_double(text, &o->seconds) && o->seconds > 0;
    case 'W':
        return !parse_double(text, &o->warmup_s) && o->warmup_s >= 0;
    case 'd':
        o->dir = text;
        return true;
    case 'n':
        o->disk = o->entry_log = false;
        return true;
    case 'e':
        o->entry_log = false;
        return true;
    case 'c':
        o->consumer = false;
        return true;
    default:
        return false;
    }
}

static void print_times(const char *name, const struct quantiles *q)
{
    printf("\"%s\":{\"mean\":%.3f,\"50\":%.3f,\"95\":%.3f,\"99\":%.3f,\"99.9\":%.3f,\"99.99\":%.3f,"
           "\"max\":%.3f},",
           name, q->mean / 1e3, q->p50 / 1e3, q->p95 / 1e3, q->p99 / 1e3, q->p999 / 1e3,
           q->p9999 / 1e3, q->max / 1e3);
}

static void print_process(const struct options *o, const struct result *r, bool first)
{
    double messages = (double)(r->entries * o->batch);
    double cpu = messages > 0 ? (r->user_s + r->system_s) * 1e6 / messages : 0;
    printf(
        "%s{\"name\":\"%s\",\"cpuUsPerMessage\":%.4f,\"userSeconds\":%.3f,\"systemSeconds\":%.3f,"
        "\"minorFaults\":%llu,\"switches\":%llu,\"flushes\":%llu,\"flushedBytes\":%llu}",
        first ? "" : ",", r->name, cpu, r->user_s, r->system_s, (unsigned long long)r->minor_faults,
        (unsigned long long)r->switches, (unsigned long long)r->flushes,
        (unsigned long long)r->flushed);
}

/* CPU a message is all processes' together: a sink's entries are only those that it got. */
static void report(const struct options *o, const struct shared *s)
{
    const struct result *producer = &s->results[SINKS + 1];
    double messages = (double)(producer->confirmed * o->batch);
    double rate = producer->seconds > 0 ? messages / producer->seconds : 0, cpu = 0;
    double made = (double)(producer->entries * o->batch);
    for (unsigned i = 0; i < PROCESSES; i++)
        cpu += s->results[i].user_s + s->results[i].system_s;
    printf("{\"messages\":%.0f,\"seconds\":%.4f,\"messagesPerSecond\":%.1f,"
           "\"megabytesPerSecond\":%.3f,\"cpuUsPerMessage\":%.4f,",
           messages, producer->seconds, rate, rate * (double)o->size / 1e6,
           made > 0 ? cpu * 1e6 / made : 0);
    print_times("latencyMs", &producer->times);
    print_times("endToEndMs", &s->results[SINKS + 2].times);
    printf("\"processes\":[");
    for (unsigned i = 0; i < process_count(o); i++)
        print_process(o, &s->results[i], i == 0);
    printf("]}\n");
}

static void run_place(const struct options *o, struct shared *s, unsigned place, const int *listen,
                      const uint16_t *ports)
{
    static const char *const names[] = {"sink-0", "sink-1",   "sink-2",
                                        "relay",  "producer", "consumer"};
    struct account a;
    account_open(&a, s, place, names[place]);
    alarm((unsigned)(o->seconds + o->warmup_s) + GRACE_S);
    if (place < SINKS)
        sink_run(o, &a, place, listen[place]);
    else if (place == SINKS)
        relay_run(o, &a, listen[SINKS], listen[SINKS + 1], ports);
    else if (place == SINKS + 1)
        producer_run(o, &a, ports[SINKS]);
    else
        consumer_run(o, &a, ports[SINKS + 1]);
}

/* One that fails takes the others with it. */
static int wait_for(const pid_t *pids, unsigned n)
{
    int code = EXIT_SUCCESS;
    for (unsigned left = n; left > 0; left--) {
        int status;
        if (wait(&status) < 0)
            break;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            code = EXIT_FAILURE;
            for (unsigned i = 0; i < n; i++)
                kill(pids[i], SIGKILL);
        }
    }
    return code;
}

static int run(const struct options *o)
{
    int listen[SINKS + 2];
    uint16_t ports[SINKS + 2];
    pid_t pids[PROCESSES];
    const unsigned n = process_count(o);
    struct shared *s =
        mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED)
        die("mmap");
    for (unsigned i = 0; i < SINKS + 2; i++)
        listen[i] = wire_listen(&ports[i]);
    signal(SIGPIPE, SIG_IGN);
    for (unsigned i = 0; i < n; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            run_place(o, s, i, listen, ports);
            _exit(EXIT_FAILURE);
        }
    }
    int code = wait_for(pids, n);
    if (code == EXIT_SUCCESS)
        report(o, s);
    return code;
}

int main(int argc, char **argv)
{
    struct options o = {.batch = 100,
                        .size = 1024,
                        .write_quorum = 2,
                        .ack_quorum = 2,
                        .window = 64,
                        .seconds = 4,
                        .warmup_s = 1,
                        .disk = true,
                        .entry_log = true,
                        .consumer = true,
                        .dir = "."};
    int option;
    while ((option = getopt(argc, argv, "b:s:q:a:w:r:t:W:d:nech")) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return EXIT_SUCCESS;
        }
        if (option == '?' || !take(&o, option, optarg)) {
            fprintf(stderr, "ceiling: '%s' cannot be used\n", argv[optind - 1]);
            return 2;
        }
    }
    if (o.ack_quorum > o.write_quorum || o.batch * (o.size + 8) > RECEIVE_MAX) {
        fprintf(stderr, "ceiling: -a is at most -q, and an entry at most 1 MiB\n");
        return 2;
    }
    return run(&o);
}
