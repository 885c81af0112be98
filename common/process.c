#include "common/process.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/slab_pool.h"

/* Bytes, in the order of /proc/self/statm: the whole, what is resident, what of that is of files.
 */
static void read_memory(uint64_t *all, uint64_t *resident, uint64_t *of_files)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    unsigned long long a = 0, r = 0, f = 0;
    FILE *statm = fopen("/proc/self/statm", "re");

    if (statm && fscanf(statm, "%llu %llu %llu", &a, &r, &f) != 3)
        a = r = f = 0;
    if (statm)
        fclose(statm);
    *all = a * page;
    *resident = r * page;
    *of_files = f * page;
}

uint64_t process_anonymous(void)
{
    uint64_t all, resident, of_files;

    read_memory(&all, &resident, &of_files);
    return resident > of_files ? resident - of_files : 0;
}

/* The kernel says how many there are without a list of them since 6.2. */
static double open_fds(void)
{
    struct stat st;
    double n = 0;

    if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
        return (double)st.st_size;
    DIR *d = opendir("/proc/self/fd");
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (!d)
        return 0;
    closedir(d);
    return n - 1; /* the list's own */
}

static double seconds(const struct timeval *t)
{
    return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static void add(struct text *t, const char *labels, const char *name, const char *kind,
                const char *help, double value)
{
    metric_head(t, name, kind, help);
    text_add(t, labels && *labels ? "%s{%s} %.16g\n" : "%s%s %.16g\n", name, labels ? labels : "",
             value);
}

void process_render(struct text *t, const char *labels)
{
    struct rusage use;
    struct rlimit files;
    uint64_t all, resident, of_files;

    const struct mem_heap heap = mem_heap();
    read_memory(&all, &resident, &of_files);
    getrusage(RUSAGE_SELF, &use);
    add(t, labels, "process_cpu_seconds_total", "counter", "user and system time",
        seconds(&use.ru_utime) + seconds(&use.ru_stime));
    add(t, labels, "process_resident_memory_bytes", "gauge", "memory that is resident",
        (double)resident);
    add(t, labels, "process_virtual_memory_bytes", "gauge", "memory that is mapped", (double)all);
    add(t, labels, "process_heap_used_bytes", "gauge", "memory that is allocated",
        (double)heap.used);
    add(t, labels, "process_heap_held_bytes", "gauge",
        "memory that the allocator has for it; not all is resident", (double)heap.held);
    add(t, labels, "lgm_slabs_used_bytes", "gauge", "buffers of messages and frames in use",
        (double)slab_pool_in_use());
    add(t, labels, "lgm_slabs_kept_bytes", "gauge", "buffers that are kept for those to come",
        (double)slab_pool_kept());
    add(t, labels, "process_open_fds", "gauge", "file descriptors in use", open_fds());
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        add(t, labels, "process_max_fds", "gauge", "file descriptors that may be in use",
            (double)files.rlim_cur);
}
