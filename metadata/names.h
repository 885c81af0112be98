/* names.h - which names are names. */
#ifndef METADATA_NAMES_H
#define METADATA_NAMES_H

#include <stdbool.h>
#include <stddef.h>

enum { NAME_LOCAL_MAX = 1024 };

/* Tenants, namespaces, clusters: letters, digits and - = : . _ as Pulsar's NamedEntity. */
bool name_is_entity(const char *s);
/* A topic's own name: not empty, UTF-8, at most NAME_LOCAL_MAX bytes, no '/'. */
bool name_is_local(const char *s);
/* Of a topic's own name: how much of it is left without its "-partition-N". */
size_t topic_name_base_len(const char *local);
/* What a bookie may be called: it is one element of a key, and not "readonly". */
bool name_is_bookie(const char *s);

#endif
