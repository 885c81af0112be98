/* The calls that change names: renames, removals, directories, links. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/crashpoints/layer.h"

static int rename_any(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    char rel[REC_PATH_MAX], rel2[REC_PATH_MAX];
    if (!layer_is_ours(from_dir, from, rel) || !layer_is_ours(to_dir, to, rel2))
        return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
    layer_lock();
    const uint32_t object = layer_object_at(from);
    struct known *replaced = layer_leaving(to);
    const int why = layer_fails(REC_RENAME, rel);
    const int rc =
        why ? layer_failed(why) : (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
    const int saved = errno;
    if (rc == 0)
        layer_record(REC_RENAME, object, rel, rel2, 0, 0);
    if (rc == 0 && replaced && replaced->object != object)
        replaced->object = 0;
    layer_unlock();
    errno = saved;
    return rc;
}

int rename(const char *from, const char *to)
{
    return rename_any(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    return rename_any(from_dir, from, to_dir, to, 0);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    return rename_any(from_dir, from, to_dir, to, flags);
}

static int unlink_any(int dir, const char *path, int flags)
{
    char rel[REC_PATH_MAX];
    if (!layer_is_ours(dir, path, rel))
        return (int)syscall(SYS_unlinkat, dir, path, flags);
    layer_lock();
    const enum rec_op op = flags & AT_REMOVEDIR ? REC_RMDIR : REC_UNLINK;
    const uint32_t object = layer_object_at(path);
    struct known *gone = layer_leaving(path);
    const int why = object ? layer_fails(op, rel) : 0;
    const int rc = why ? layer_failed(why) : (int)syscall(SYS_unlinkat, dir, path, flags);
    const int saved = errno;
    if (rc == 0)
        layer_record(op, object, rel, NULL, 0, 0);
    if (rc == 0 && gone)
        gone->object = 0;
    layer_unlock();
    errno = saved;
    return rc;
}

int unlink(const char *path)
{
    return unlink_any(AT_FDCWD, path, 0);
}

int unlinkat(int dir, const char *path, int flags)
{
    return unlink_any(dir, path, flags);
}

int rmdir(const char *path)
{
    return unlink_any(AT_FDCWD, path, AT_REMOVEDIR);
}

int remove(const char *path)
{
    const int rc = unlink_any(AT_FDCWD, path, 0);
    return rc != 0 && errno == EISDIR ? rmdir(path) : rc;
}

static int mkdir_any(int dir, const char *path, mode_t mode)
{
    char rel[REC_PATH_MAX];
    struct stat st;
    if (!layer_is_ours(dir, path, rel))
        return (int)syscall(SYS_mkdirat, dir, path, mode);
    layer_lock();
    const bool is_new = syscall(SYS_faccessat, dir, path, F_OK) != 0;
    const int why = is_new ? layer_fails(REC_MKDIR, rel) : 0;
    const int rc = why ? layer_failed(why) : (int)syscall(SYS_mkdirat, dir, path, mode);
    const int saved = errno;
    if (rc == 0 && syscall(SYS_newfstatat, dir, path, &st, 0) == 0)
        layer_record(REC_MKDIR, layer_name_object(st.st_ino), rel, NULL, 0, 0);
    layer_unlock();
    errno = saved;
    return rc;
}

int mkdir(const char *path, mode_t mode)
{
    return mkdir_any(AT_FDCWD, path, mode);
}

int mkdirat(int dir, const char *path, mode_t mode)
{
    return mkdir_any(dir, path, mode);
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    char rel[REC_PATH_MAX], rel2[REC_PATH_MAX];
    if (!layer_is_ours(from_dir, from, rel) || !layer_is_ours(to_dir, to, rel2))
        return (int)syscall(SYS_linkat, from_dir, from, to_dir, to, flags);
    layer_lock();
    const uint32_t object = layer_object_at(from);
    const int why = layer_fails(REC_LINK, rel);
    const int rc =
        why ? layer_failed(why) : (int)syscall(SYS_linkat, from_dir, from, to_dir, to, flags);
    const int saved = errno;
    if (rc == 0)
        layer_record(REC_LINK, object, rel, rel2, 0, 0);
    layer_unlock();
    errno = saved;
    return rc;
}

int link(const char *from, const char *to)
{
    return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}
