#include "cli/verify_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/metric.h"

enum { GATHER_BYTES = 64 * 1024 };

struct verify_log {
    int fd;
    enum err err;
    struct text gathered;
};

enum err verify_log_create(struct verify_log **out, const char *path, const char *run,
                           uint64_t count, const char *topic)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_of_errno(errno);
    struct verify_log *l = mem_new(struct verify_log);
    l->fd = fd;
    text_add(&l->gathered, "lgm-verify-log 1 run=%s count=%" PRIu64 " topic=%s\n", run, count,
             topic);
    *out = l;
    return verify_log_flush(l, true);
}

void verify_log_acked(struct verify_log *l, uint64_t seq, struct message_id id)
{
    text_add(&l->gathered, "A %" PRIu64 " %" PRId64 ":%" PRId64 ":%d\n", seq, id.ledger, id.entry,
             id.batch_index);
    if (l->gathered.len > GATHER_BYTES && verify_log_flush(l, false))
        return; /* kept in l->err: the next flush tells */
}

void verify_log_resent(struct verify_log *l, uint64_t seq)
{
    text_add(&l->gathered, "R %" PRIu64 "\n", seq);
    if (verify_log_flush(l, false))
        return; /* as above */
}

enum err verify_log_flush(struct verify_log *l, bool sync)
{
    size_t at = 0;
    while (!l->err && at < l->gathered.len) {
        ssize_t n = write(l->fd, l->gathered.at + at, l->gathered.len - at);
        if (n > 0)
            at += (size_t)n;
        else if (errno != EINTR)
            l->err = err_of_errno(errno);
    }
    l->gathered.len = 0;
    if (!l->err && sync && fdatasync(l->fd) != 0)
        l->err = err_of_errno(errno);
    return l->err;
}

enum err verify_log_end(struct verify_log **l, uint64_t acked, uint64_t end)
{
    struct verify_log *old = *l;
    *l = NULL;
    text_add(&old->gathered, "E %" PRIu64 " %" PRIu64 "\n", acked, end);
    enum err err = verify_log_flush(old, true);
    close(old->fd);
    text_drop(&old->gathered);
    mem_free(old);
    return err;
}

/* ---- reading --------------------------------------------------------------------------------- */

enum err verify_evidence_open(struct verify_evidence *e, const char *path)
{
    char topic[1024];
    *e = (struct verify_evidence){.file = fopen(path, "r")};
    if (!e->file)
        return err_of_errno(errno);
    if (fscanf(e->file, "lgm-verify-log 1 run=%16[0-9a-f] count=%" SCNu64 " topic=%1023[^\n]\n",
               e->run, &e->count, topic) != 3) {
        fclose(e->file);
        return ERR_MALFORMED;
    }
    e->topic = mem_string(topic);
    e->offset = ftell(e->file);
    verify_evidence_more(e);
    return ERR_OK;
}

static struct verify_seen *seen(struct verify_evidence *e, uint64_t seq)
{
    if (seq >= e->room) {
        uint64_t room = seq < 1024 ? 2048 : seq * 2;
        e->at = mem_resize(e->at, room * sizeof *e->at);
        memset(e->at + e->room, 0, (room - e->room) * sizeof *e->at);
        e->room = room;
    }
    return &e->at[seq];
}

static void take_line(struct verify_evidence *e, const char *line)
{
    uint64_t seq;
    if (sscanf(line, "%*c %" SCNu64, &seq) != 1 || (line[0] != 'E' && seq > e->count))
        return;
    if (line[0] == 'A') {
        e->acked += !seen(e, seq)->acked;
        seen(e, seq)->acked = true;
    } else if (line[0] == 'R') {
        seen(e, seq)->resent = true;
    } else if (line[0] == 'E' && sscanf(line, "E %*u %" SCNu64, &e->count) == 1) {
        e->ended = true;
    }
}

void verify_evidence_more(struct verify_evidence *e)
{
    char line[256];
    clearerr(e->file);
    if (fseek(e->file, e->offset, SEEK_SET) != 0)
        return;
    while (fgets(line, sizeof line, e->file)) {
        size_t len = strlen(line);
        if (line[len - 1] != '\n')
            break;
        take_line(e, line);
        e->offset += (long)len;
    }
}

void verify_evidence_drop(struct verify_evidence *e)
{
    fclose(e->file);
    mem_free(e->at);
    mem_free(e->topic);
}
