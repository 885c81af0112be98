/* etcd_keys.h - keys as callers write them and as etcd has them: the root goes before.
 *
 * A prefix is a span to etcd: from it, up to the first key that does not begin with it.
 */
#ifndef METADATA_ETCD_KEYS_H
#define METADATA_ETCD_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

struct etcd_span {
    uint8_t *from, *to; /* bytes; `to` is not in it, one zero byte: no end */
    size_t from_len, to_len;
};

char *etcd_key(const char *root, const char *key); /* gives */
/* Gives the key without the root; NULL: not one that a caller can write. */
char *etcd_key_shown(const char *root, struct view key);
/* Gives: keys that begin with prefix and come after `after`, NULL: all of them. */
struct etcd_span etcd_span_of(const char *root, const char *prefix, const char *after);
/* Goes on behind that key, in etcd's form. */
void etcd_span_after(struct etcd_span *s, struct view key);
void etcd_span_drop(struct etcd_span *s);

#endif
