#include "cli/bookie_gc.h"

#include <curl/curl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "common/mem.h"
#include "common/metric.h"

enum { TIMEOUT_S = 30 };

static const char help[] =
    "usage: lgm bookie gc [status | run [--minor | --listing] | resume | suspend | unsuspend]\n"
    "                     [--http HOST:PORT]\n\n"
    "status     what it does, and whether it has halted (the default)\n"
    "run        a round now: ledgers that are gone from the metadata, logs without live ledgers,\n"
    "           and a major compaction.  --minor: a minor one, --listing: none\n"
    "resume     it has halted because the metadata was not what it was: it is right as it is now,\n"
    "           and what is gone there may go here.  Ledgers that a restored store does not know\n"
    "           are deleted then\n"
    "suspend    no compactions, until `unsuspend` or a restart\n\n"
    "  --http HOST:PORT   the bookie's HTTP, 127.0.0.1:8000 unless given\n\n"
    "Example: lgm bookie gc status --http bookie3.example.com:8000\n";

static const struct option options[] = {{"http", required_argument, NULL, 'H'},
                                        {"minor", no_argument, NULL, 'm'},
                                        {"listing", no_argument, NULL, 'l'},
                                        {"help", no_argument, NULL, 'h'},
                                        {0}};

struct request {
    const char *verb, *method, *path, *body;
};

static const struct request requests[] = {
    {"status", "GET", "/api/v1/bookie/gc/state", NULL},
    {"run", "PUT", "/api/v1/bookie/gc", "{\"forceMajor\":true,\"forceMinor\":true}"},
    {"resume", "PUT", "/api/v1/bookie/gc/resume", ""},
    {"suspend", "PUT", "/api/v1/bookie/gc/suspend_compaction",
     "{\"suspendMajor\":true,\"suspendMinor\":true}"},
    {"unsuspend", "PUT", "/api/v1/bookie/gc/resume_compaction",
     "{\"resumeMajor\":true,\"resumeMinor\":true}"},
};

static size_t on_body(char *at, size_t size, size_t n, void *ctx)
{
    text_add(ctx, "%.*s", (int)(size * n), at);
    return size * n;
}

/* The status of the answer; 0: there was none. */
static long ask(const struct request *r, const char *http, struct text *answer)
{
    long status = 0;
    char *url = mem_format("%s%s%s", strstr(http, "://") ? "" : "http://", http, r->path);
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, r->method);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)TIMEOUT_S);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    if (r->body)
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, r->body);
    const CURLcode failed = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (failed)
        fprintf(stderr, "lgm bookie: %s: %s\n", url, curl_easy_strerror(failed));
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    mem_free(url);
    return failed ? 0 : status;
}

static int run(const struct request *r, const char *http)
{
    struct text answer = {0};
    const long status = ask(r, http, &answer);
    const bool fine = status == 200;
    const char *text = answer.at ? answer.at : "";
    if (status != 0)
        fprintf(fine ? stdout : stderr, "%s%s", text,
                answer.len > 0 && text[answer.len - 1] == '\n' ? "" : "\n");
    text_drop(&answer);
    return fine ? EXIT_DONE : EXIT_FAILED;
}

static const struct request *find(const char *verb)
{
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
        if (strcmp(requests[i].verb, verb) == 0)
            return &requests[i];
    return NULL;
}

int gc_command(int argc, char **argv)
{
    const char *http = "127.0.0.1:8000", *body = NULL;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return EXIT_DONE;
        }
        if (option == 'H')
            http = optarg;
        else if (option == 'm')
            body = "{\"forceMajor\":false,\"forceMinor\":true}";
        else if (option == 'l')
            body = "{\"forceMajor\":false,\"forceMinor\":false}";
        else
            return usage_error("bookie", "'%s' cannot be used", argv[optind - 1]);
    }
    const char *verb = optind < argc ? argv[optind] : "status";
    const struct request *found = find(verb);
    if (!found || optind + 1 < argc)
        return usage_error("bookie", "gc takes status, run, resume, suspend or unsuspend, not '%s'",
                           argv[argc - 1]);
    struct request r = *found;
    if (body && strcmp(verb, "run") == 0)
        r.body = body;
    return run(&r, http);
}
