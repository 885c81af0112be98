/* config.h - settings from one table: names, types, limits, defaults, documentation.
 *
 * A component lists its settings once in a .def file:
 *   X(upstream key, member, type, default, min, max, when, what)
 * and makes from it its struct, and a `struct config_key` array (CONFIG_KEY below).
 * Files are `key=value` lines (broker.conf / bookkeeper.conf syntax, # comments); then
 * LGM_key from the environment, then --set key=value, each over the last.
 *
 * An upstream key that is no setting here is listed with upstream's default, and matters
 * when it is set to anything else:
 *   IGNORED  there is nothing here that it could tune: a note in the log
 *   ABSENT   it asks for something that is not there: a warning
 *   REFUSED  it promises security, durability or placement that is not given: no start
 * A key in no table is a warning with the nearest name.  An impossible value is
 * ERR_BAD_CONFIG and a log event with file, line, key and reason.  An empty value means the
 * default, since stock files leave much empty; of a PORT it means none: CONFIG_NO_PORT.
 *
 * Memory: strings set by a load are owned by the config struct's tables: config_drop().
 */
#ifndef COMMON_CONFIG_H
#define COMMON_CONFIG_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"

enum config_type { CONFIG_BOOL, CONFIG_INT, CONFIG_PORT, CONFIG_DOUBLE, CONFIG_STRING };
enum { CONFIG_NO_PORT = -1 };
enum config_class { CONFIG_LIVE, CONFIG_RESTART, CONFIG_IGNORED, CONFIG_ABSENT, CONFIG_REFUSED };

/* INT and PORT members are int64_t, DOUBLE double, BOOL bool, STRING const char *. */
struct config_key {
    const char *name; /* upstream's */
    enum config_type type;
    enum config_class class;
    size_t offset;      /* of the member; unused when there is none */
    const char *preset; /* the default, as text */
    double min, max;    /* numbers only */
    const char *what;
};

struct config_table {
    const struct config_key *keys;
    size_t n;
    const char *const *aliases; /* pairs: alias, name, ..., NULL; or NULL */
};

MUST_CHECK enum err config_defaults(const struct config_table *t, void *conf);
MUST_CHECK enum err config_load_file(const struct config_table *t, void *conf, const char *path);
MUST_CHECK enum err config_load_env(const struct config_table *t, void *conf);
MUST_CHECK enum err config_set(const struct config_table *t, void *conf, const char *key_value,
                               const char *where);
void config_drop(const struct config_table *t, void *conf);
void config_describe(const struct config_table *t, FILE *out);          /* --describe-config */
void config_describe_markdown(const struct config_table *t, FILE *out); /* docs/configuration.md */

#endif
