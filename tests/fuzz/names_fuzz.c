#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "metadata/paths.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A name that is accepted has keys, and is the same when its full form is read again. */
static void topic(const char *text)
{
    struct topic_name n, again;
    char key[META_KEY_MAX];

    if (topic_name_parse(text, &n))
        return;
    if (topic_name_parse(n.full, &again) || strcmp(n.full, again.full) != 0)
        abort();
    char *ml = managed_ledger_name(&n);
    if (path_managed_ledger(ml, key) == ERR_OK && strncmp(key, "/managed-ledgers/", 17) != 0)
        abort();
    if (path_partitioned(&n, key) == ERR_OK && strncmp(key, "/admin/", 7) != 0)
        abort();
    mem_free(ml);
    topic_name_drop(&n);
    topic_name_drop(&again);
}

static void encoding(const char *text)
{
    char *encoded = name_encode(text), *back, *out;

    if (name_decode(encoded, &back) || strcmp(back, text) != 0)
        abort();
    mem_free(back);
    mem_free(encoded);
    if (name_decode(text, &out) == ERR_OK)
        mem_free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_string_n((const char *)data, size);
    char key[META_KEY_MAX];
    int64_t id;

    topic(text);
    encoding(text);
    if (path_ledger_id(text, &id) == ERR_OK && (path_ledger(id, key) || strcmp(text, key) != 0))
        abort();
    mem_free(text);
    return 0;
}
