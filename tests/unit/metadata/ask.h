/* ask.h - one metadata call, waited for, as a test writes it. */
#ifndef TESTS_UNIT_METADATA_ASK_H
#define TESTS_UNIT_METADATA_ASK_H

#include "metadata/metadata.h"

struct answered {
    enum err err;
    int64_t version;
    uint64_t revision;
    int64_t first;
    bool more;
    char text[256]; /* the value; of a range "key=value@version ..." */
};

struct answered ask_get(struct metadata *m, const char *key);
struct answered ask_put(struct metadata *m, const char *key, const char *value, int64_t expected);
struct answered ask_remove(struct metadata *m, const char *key, int64_t expected);
struct answered ask_range(struct metadata *m, const char *prefix, const char *after, size_t limit,
                          bool keys_only);
struct answered ask_txn(struct metadata *m, const struct meta_op *ops, size_t n);
struct answered ask_hold(struct metadata *m, const char *key, const char *value);
struct answered ask_release(struct metadata *m, const char *key);
struct answered ask_counter(struct metadata *m, const char *key, int64_t n);
struct slice slice_text(const char *s); /* gives */

#endif
