/* A disk whose syncs take as long as a file says, for one process: LD_PRELOAD this,
 * LGM_SLOW_SYNC=FILE.
 *
 * The file has milliseconds in it and may come and go while the process runs.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_as_told(void)
{
    const char *path = getenv("LGM_SLOW_SYNC");
    FILE *f = path ? fopen(path, "r") : NULL;
    int ms = 0;
    if (!f)
        return;
    if (fscanf(f, "%d", &ms) == 1 && ms > 0)
        (void)poll(NULL, 0, ms);
    fclose(f);
}

typedef int sync_fn(int fd);

static int after_a_while(const char *name, int fd)
{
    void *found = dlsym(RTLD_NEXT, name);
    sync_fn *real;
    *(void **)(&real) = found;
    wait_as_told();
    return real(fd);
}

int fdatasync(int fd)
{
    return after_a_while("fdatasync", fd);
}

int fsync(int fd)
{
    return after_a_while("fsync", fd);
}
