#include "tests/unit/broker/admin/desk.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "tests/unit/broker/session/raw.h"

static char *read_all(int fd)
{
    size_t len = 0, room = 1 << 20;
    char *got = mem_alloc(room);

    for (ssize_t n; (n = read(fd, got + len, room - len - 1)) > 0;) {
        len += (size_t)n;
        if (room - len < 65536)
            got = mem_resize(got, room *= 2);
    }
    got[len] = '\0';
    return got;
}

int desk_ask(const struct inn *i, const char *method, const char *path, const char *json,
             char **body)
{
    char *request = mem_format("%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                               "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                               method, path, json ? strlen(json) : 0, json ? json : "");
    int fd = raw_socket(broker_web_port(i->broker));

    ck_assert_int_eq(write(fd, request, strlen(request)), (ssize_t)strlen(request));
    char *got = read_all(fd);
    close(fd);
    mem_free(request);
    ck_assert_uint_gt(strlen(got), 12);
    int status = (int)strtol(got + 9, NULL, 10);
    if (body)
        *body = got;
    else
        mem_free(got);
    return status;
}
