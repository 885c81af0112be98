#include "common/memory_limit.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/parse.h"

enum { GROUPS_MAX = 16 * 1024 };

/* "max" is no number: no limit. */
static uint64_t limit_in(const char *file, uint64_t otherwise)
{
    char line[64] = "";
    uint64_t bytes;
    FILE *f = fopen(file, "re");

    if (!f)
        return otherwise;
    if (!fgets(line, sizeof(line), f))
        line[0] = '\0';
    fclose(f);
    line[strcspn(line, "\n")] = '\0';
    return parse_u64(line, &bytes) || bytes > otherwise ? otherwise : bytes;
}

static uint64_t limit_of(const char *root, const char *group, const char *name, uint64_t least)
{
    char *file = mem_format("%s%s/%s", root, group, name);

    least = limit_in(file, least);
    mem_free(file);
    return least;
}

/* From the group up to the root. */
static uint64_t limit_along(const char *root, const char *group, const char *name, uint64_t least)
{
    char *at = mem_string(strcmp(group, "/") == 0 ? "" : group);

    for (char *slash; (slash = strrchr(at, '/')) != NULL; *slash = '\0')
        least = limit_of(root, at, name, least);
    mem_free(at);
    return limit_of(root, "", name, least);
}

static bool names(const char *controllers, const char *one)
{
    const size_t len = strlen(one);

    for (const char *at = controllers; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
        if (strncmp(at, one, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    return false;
}

/* "0::/a/b" is version 2's, "7:cpu,memory:/a/b" version 1's. */
static uint64_t limit_by(const char *root, char *line, uint64_t least)
{
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;

    if (!group)
        return least;
    *controllers++ = *group++ = '\0';
    if (*controllers == '\0')
        return limit_along(root, group, "memory.max", least);
    if (!names(controllers, "memory"))
        return least;
    char *v1 = mem_format("%s/memory", root);
    least = limit_along(v1, group, "memory.limit_in_bytes", least);
    mem_free(v1);
    return least;
}

uint64_t memory_limit_under(const char *root, const char *groups, uint64_t physical)
{
    char *text = mem_string(groups), *rest = text;
    uint64_t least = physical;

    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
        least = limit_by(root, line, least);
    mem_free(text);
    return least;
}

uint64_t memory_limit_find(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    char *groups = mem_alloc(GROUPS_MAX + 1);
    FILE *f = fopen("/proc/self/cgroup", "re");
    size_t len = f ? fread(groups, 1, GROUPS_MAX, f) : 0;

    if (f)
        fclose(f);
    groups[len] = '\0';
    const uint64_t limit = memory_limit_under(
        "/sys/fs/cgroup", groups, pages > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX);
    mem_free(groups);
    return limit;
}
