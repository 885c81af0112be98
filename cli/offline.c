#include "cli/offline.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/command.h"
#include "cli/store.h"
#include "common/log.h"
#include "common/mem.h"
#include "metadata/metadata.h"
#include "metadata/paths.h"
#include "metadata/records.h"

enum { COOKIE_MAX = 65536 };

static const struct offline_verb verbs[] = {
    {"rebuild-index", offline_rebuild_index, NEEDS_QUIET, "[--no-metadata] [--force]",
     "makes a lost index again from entry logs, journal and metadata"},
    {"list-ledgers", offline_list_ledgers, NEEDS_QUIET, "", "what is known of each ledger here"},
    {"list-entries", offline_list_entries, NEEDS_QUIET, "LEDGER",
     "its entries, and where they lie"},
    {"list-logs", offline_list_logs, NEEDS_DIRS, "", "entry logs: size, bytes that were in use"},
    {"lastmark", offline_lastmark, NEEDS_DIRS, "", "where replay of each journal begins"},
    {"dump-entry", offline_dump_entry, NEEDS_QUIET, "LEDGER ENTRY", "an entry's header and bytes"},
    {"dump-log", offline_dump_log, NEEDS_DIRS, "LOG",
     "every record of an entry log, and every damage"},
    {"dump-journal", offline_dump_journal, NEEDS_DIRS, "[FILE]", "every record of a journal file"},
    {"verify-journal", offline_verify_journal, NEEDS_QUIET, "", "would the next start take it?"},
    {"verify-logs", offline_verify_logs, NEEDS_QUIET, "",
     "every checksum of every entry log, every place that the index names"},
    {"cookie", offline_cookie, NEEDS_NOTHING, "show [ID] | create ID FILE | delete ID [--force]",
     "whose the directories are; the cluster's cookie of a bookie, shown, put back, taken away"},
    {"simpletest", offline_simpletest, NEEDS_NOTHING, "[ENSEMBLE [WRITE [ACK [ENTRIES]]]]",
     "makes a ledger over the bookies that live, writes, reads and deletes it"},
};

int offline_fail(const struct offline *o, const char *what, enum err err)
{
    fprintf(stderr, "lgm bookie %s: %s: %s\n", o->verb, what, err_text(err));
    return EXIT_FAILED;
}

__attribute__((format(printf, 2, 3))) static int refuse(const struct offline *o, const char *fmt,
                                                        ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "lgm bookie %s: ", o->verb);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    return EXIT_FAILED;
}

/* ---- configuration and directories ----------------------------------------------------------- */

static enum err load_conf(struct offline *o)
{
    const struct config_table *t = &bookie_config_table;
    TRY(config_defaults(t, &o->conf));
    if (o->conf_file)
        TRY(config_load_file(t, &o->conf, o->conf_file));
    TRY(config_load_env(t, &o->conf));
    for (unsigned i = 0; i < o->n_sets; i++)
        TRY(config_set(t, &o->conf, o->sets[i], "--set"));
    return ERR_OK;
}

static bool is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int offline_name_dirs(struct offline *o)
{
    struct directories *d = &o->dirs;
    if (directories_name(d, &o->conf))
        return EXIT_FAILED;
    for (unsigned i = 0; i < d->n; i++)
        if (!is_dir(d->currents[i]))
            return refuse(o,
                          "%s is no directory of a bookie; --conf FILE or --set KEY=VALUE name the "
                          "right one",
                          d->roots[i]);
    return EXIT_DONE;
}

static int lock_all(struct offline *o)
{
    struct directories *d = &o->dirs;
    for (unsigned i = 0; i < d->n; i++) {
        char *path = mem_format("%s/lock", d->roots[i]);
        const enum err err = disk_lock(path, &d->locks[i]);
        mem_free(path);
        if (err == ERR_EXISTS)
            return refuse(o, "a bookie runs on %s: stop it first", d->roots[i]);
        if (err)
            return offline_fail(o, d->roots[i], err);
    }
    return EXIT_DONE;
}

static void drop(struct offline *o)
{
    if (o->meta)
        meta_close(&o->meta);
    directories_close(&o->dirs);
    mem_free(o->bookie_id);
    mem_free(o->instance_id);
    config_drop(&bookie_config_table, &o->conf);
}

/* ---- whose they are -------------------------------------------------------------------------- */

int offline_identity(struct offline *o)
{
    struct cookie_record cookie;
    char *text, *path = mem_format("%s/VERSION", o->dirs.ledger_dirs[0]);
    size_t len;
    enum err err = disk_load(disk_real(), path, COOKIE_MAX, &text, &len);
    if (!err) {
        err = cookie_record_read(view_of(text, len), &cookie);
        mem_free(text);
    }
    const int code = err ? offline_fail(o, path, err) : EXIT_DONE;
    mem_free(path);
    if (err)
        return code;
    o->bookie_id = mem_string(cookie.bookie_id);
    o->instance_id = mem_string(cookie.instance_id ? cookie.instance_id : "");
    cookie_record_drop(&cookie);
    return EXIT_DONE;
}

/* A store of another cluster knows none of our ledgers, which must not be taken for an answer. */
static int check_instance(const struct offline *o, const char *url)
{
    struct slice value = {0};
    const enum err err = meta_get_wait(o->meta, PATH_INSTANCE_ID, &value, NULL);
    if (err)
        return offline_fail(o, url, err);
    const bool ours =
        value.len == strlen(o->instance_id) && memcmp(value.base, o->instance_id, value.len) == 0;
    slice_drop(&value);
    return ours ? EXIT_DONE : refuse(o, "%s is another cluster's than the directories", url);
}

int offline_metadata(struct offline *o)
{
    if (o->no_metadata)
        return EXIT_DONE;
    const char *url = o->url ? o->url : o->conf.metadata_service_uri;
    int code = cli_store_open("bookie", url, &o->etcd, &o->meta);
    if (code == EXIT_DONE)
        code = check_instance(o, url);
    return code;
}

/* ---- the command line ------------------------------------------------------------------------ */

const struct offline_verb *offline_find(const char *name)
{
    for (unsigned i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

void offline_help(void)
{
    puts("On the directories of a bookie; * : it must not run\n\n"
         "usage: lgm bookie VERB --conf FILE [--set KEY=VALUE]... [--json]\n");
    for (unsigned i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        printf("%c %s %s\n      %s\n", verbs[i].needs == NEEDS_QUIET ? '*' : ' ', verbs[i].name,
               verbs[i].arguments, verbs[i].what);
    puts("\n  --conf FILE            the bookie's configuration (bookkeeper.conf)\n"
         "  --set KEY=VALUE        one setting of it, as journalDirectories=DIR\n"
         "  --metadata URL         of the cluster, when it is not the configuration's\n"
         "  --json                 a line of JSON for each thing\n\n"
         "Exit code 1: it failed, or something is damaged.\n\n"
         "Example: lgm bookie rebuild-index --conf /etc/lgm/bookkeeper.conf");
}

static const struct option options[] = {STORE_OPTIONS,
                                        {"conf", required_argument, NULL, 'c'},
                                        {"set", required_argument, NULL, 's'},
                                        {"no-metadata", no_argument, NULL, 'N'},
                                        {"force", no_argument, NULL, 'f'},
                                        {"json", no_argument, NULL, 'j'},
                                        {"help", no_argument, NULL, 'h'},
                                        {0}};

static bool take_option(struct offline *o, int option)
{
    if (option == 'c')
        o->conf_file = optarg;
    else if (option == 's' && o->n_sets < OFFLINE_SETS_MAX)
        o->sets[o->n_sets++] = optarg;
    else if (option == 'N')
        o->no_metadata = true;
    else if (option == 'f')
        o->force = true;
    else if (option == 'j')
        o->json = true;
    else
        return store_option(option, optarg, &o->url, &o->etcd);
    return true;
}

static int take_words(struct offline *o, int n, char **words)
{
    if (n > (int)(sizeof o->words / sizeof o->words[0]))
        return usage_error("bookie", "'%s' is one word too many", words[n - 1]);
    for (int i = 0; i < n; i++)
        o->words[o->n_words++] = words[i];
    return EXIT_DONE;
}

static int prepare(struct offline *o, const struct offline_verb *v)
{
    int code = EXIT_DONE;
    if (load_conf(o)) /* the log says which line */
        return EXIT_FAILED;
    if (v->needs != NEEDS_NOTHING)
        code = offline_name_dirs(o);
    if (code == EXIT_DONE && v->needs == NEEDS_QUIET)
        code = lock_all(o);
    return code;
}

int offline_run(const struct offline_verb *v, int argc, char **argv)
{
    struct offline *o = mem_new(struct offline);
    int option, code = EXIT_DONE;
    o->verb = v->name;
    log_set_level(LOG_WARN);
    while (code == EXIT_DONE && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'h') {
            offline_help();
            mem_free(o);
            return EXIT_DONE;
        }
        if (!take_option(o, option))
            code = usage_error("bookie", "'%s' cannot be used", argv[optind - 1]);
    }
    if (code == EXIT_DONE)
        code = take_words(o, argc - optind, argv + optind);
    if (code == EXIT_DONE)
        code = prepare(o, v);
    if (code == EXIT_DONE)
        code = v->run(o);
    drop(o);
    mem_free(o);
    return code;
}
