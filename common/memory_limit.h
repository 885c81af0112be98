/* memory_limit.h - how much memory this process may have: what the kernel would kill it for.
 *
 * The least of what its control group and those above it say (cgroup v2: memory.max, v1:
 * memory.limit_in_bytes) and of what the machine has.  A container often sees its own group as
 * the root and still reads its name from outside: so the root is always looked at too.
 *
 * Threads: any.
 */
#ifndef COMMON_MEMORY_LIMIT_H
#define COMMON_MEMORY_LIMIT_H

#include <stdint.h>

uint64_t memory_limit_find(void); /* bytes */

/* The same, of a tree like /sys/fs/cgroup and a text like /proc/self/cgroup. */
uint64_t memory_limit_under(const char *root, const char *groups, uint64_t physical);

#endif
