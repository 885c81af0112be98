#include "tests/lib/etcd.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BINARY "/usr/bin/etcd"

enum { ATTEMPTS = 3000, PAUSE_MS = 10 };

static void pause_a_little(void)
{
    const struct timespec t = {.tv_nsec = PAUSE_MS * 1000000L};

    nanosleep(&t, NULL);
}

int test_etcd_skip(void)
{
    printf("skipped: no %s (Debian: etcd-server)\n0 passed, 0 failed\n", BINARY);
    return EXIT_SUCCESS;
}

static struct sockaddr_in local(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static bool is_free(uint16_t port)
{
    struct sockaddr_in a = local(port);
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    if (fd < 0)
        abort();
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const bool is = bind(fd, (struct sockaddr *)&a, sizeof a) == 0;
    close(fd);
    return is;
}

/* Below the kernel's ephemeral range: no outgoing connection takes it while its owner is dead.
 * Tests that run at the same time look in different places, as tests/lib/lgm.py does. */
static uint16_t stable_port(void)
{
    static unsigned tried;
    const unsigned own = 12000 + (unsigned)getpid() % 80 * 250;

    while (!is_free((uint16_t)(own + tried % 250)))
        tried++;
    return (uint16_t)(own + tried++ % 250);
}

/* ---- asking --------------------------------------------------------------------------------- */

static char authorization[256];

void test_etcd_authorize(const char *token)
{
    snprintf(authorization, sizeof authorization, "Authorization: %s\r\n", token);
}

static void send_request(int fd, const char *path, const char *json)
{
    char request[2048];
    int n = snprintf(request, sizeof request,
                     "POST %s HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n%s"
                     "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                     path, authorization, strlen(json), json);

    if (send(fd, request, (size_t)n, MSG_NOSIGNAL) != n)
        shutdown(fd, SHUT_RDWR);
}

int test_etcd_ask(uint16_t port, const char *path, const char *json, char *into, size_t len)
{
    const struct timeval patience = {.tv_sec = 1};
    struct sockaddr_in a = local(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), status = 0;
    size_t n = 0;
    ssize_t got;

    into[0] = '\0';
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0) {
        send_request(fd, path, json);
        while (n + 1 < len && (got = recv(fd, into + n, len - 1 - n, 0)) > 0)
            n += (size_t)got;
    }
    close(fd);
    into[n] = '\0';
    return sscanf(into, "HTTP/1.1 %d", &status) == 1 ? status : 0;
}

uint64_t test_etcd_number(const char *body, const char *name)
{
    char quoted[64];
    unsigned long long value = 0;

    snprintf(quoted, sizeof quoted, "\"%s\":\"", name);
    const char *at = strstr(body, quoted);
    if (at && sscanf(at + strlen(quoted), "%llu", &value) != 1)
        value = 0;
    return value;
}

static uint64_t leader_seen_by(const struct test_etcd *t, unsigned i, uint64_t *member)
{
    char body[4096];

    if (!t->at[i].pid ||
        test_etcd_ask(t->at[i].client, "/v3/maintenance/status", "{}", body, sizeof body) != 200)
        return 0;
    *member = test_etcd_number(body, "member_id");
    return test_etcd_number(body, "leader");
}

int test_etcd_leader(const struct test_etcd *t)
{
    uint64_t member = 0;

    for (int left = ATTEMPTS; left > 0; left--, pause_a_little())
        for (unsigned i = 0; i < t->n; i++) {
            uint64_t leader = leader_seen_by(t, i, &member);
            if (leader && leader == member)
                return (int)i;
        }
    abort();
}

void test_etcd_await(const struct test_etcd *t, unsigned i)
{
    uint64_t member;

    for (int left = ATTEMPTS; left > 0; left--, pause_a_little())
        if (leader_seen_by(t, i, &member))
            return;
    abort();
}

/* ---- running -------------------------------------------------------------------------------- */

static void join_names(const struct test_etcd *t, char *into, size_t len)
{
    size_t n = 0;

    for (unsigned i = 0; i < t->n; i++)
        n += (size_t)snprintf(into + n, len - n, "%sn%u=http://127.0.0.1:%u", i ? "," : "", i,
                              t->at[i].peer);
}

static void run_here(const struct test_etcd *t, unsigned i)
{
    char name[8], dir[128], clients[128], peers[64], all[256], log[128];
    char *args[40] = {BINARY,
                      "--name",
                      name,
                      "--data-dir",
                      dir,
                      "--listen-client-urls",
                      clients,
                      "--advertise-client-urls",
                      clients,
                      "--listen-peer-urls",
                      peers,
                      "--initial-advertise-peer-urls",
                      peers,
                      "--initial-cluster",
                      all,
                      "--initial-cluster-token",
                      (char *)(uintptr_t)t->dir,
                      "--heartbeat-interval=30",
                      "--election-timeout=150",
                      "--pre-vote",
                      "--grpc-keepalive-min-time=100ms",
                      "--logger=zap"};
    size_t n = 0;
    int used;

    while (args[n])
        n++;
    snprintf(name, sizeof name, "n%u", i);
    snprintf(dir, sizeof dir, "%s/%s", t->dir, name);
    snprintf(log, sizeof log, "%s/%s.log", t->dir, name);
    used = snprintf(clients, sizeof clients, "http://127.0.0.1:%u", t->at[i].client);
    snprintf(peers, sizeof peers, "http://127.0.0.1:%u", t->at[i].peer);
    join_names(t, all, sizeof all);
    if (t->tls) {
        snprintf(clients + used, sizeof clients - (size_t)used, ",https://127.0.0.1:%u",
                 t->at[i].secure);
        char *more[] = {"--cert-file",       (char *)(uintptr_t)t->tls->cert,
                        "--key-file",        (char *)(uintptr_t)t->tls->key,
                        "--trusted-ca-file", (char *)(uintptr_t)t->tls->trust,
                        "--client-cert-auth"};
        memcpy(&args[n], more, sizeof more);
    }
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    setenv("ETCD_UNSUPPORTED_ARCH", "arm64", 1);
    execv(BINARY, args);
    _exit(127);
}

void test_etcd_run(struct test_etcd *t, unsigned i)
{
    pid_t parent = getpid(), pid = fork();

    if (pid < 0)
        abort();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        run_here(t, i);
    }
    t->at[i].pid = pid;
}

static bool make_dir(struct test_etcd *t)
{
    const char *under = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("TMPDIR");

    snprintf(t->dir, sizeof t->dir, "%.40s/lgm-etcd-XXXXXX", under ? under : "/tmp");
    return mkdtemp(t->dir) != NULL;
}

bool test_etcd_start(struct test_etcd *t, unsigned nodes, const struct test_etcd_tls *tls)
{
    *t = (struct test_etcd){.n = nodes, .tls = tls};
    if (access(BINARY, X_OK) != 0)
        return false;
    if (!make_dir(t))
        abort();
    for (unsigned i = 0; i < nodes; i++) {
        t->at[i].client = stable_port();
        t->at[i].peer = stable_port();
        t->at[i].secure = stable_port();
    }
    for (unsigned i = 0; i < nodes; i++)
        test_etcd_run(t, i);
    for (unsigned i = 0; i < nodes; i++)
        test_etcd_await(t, i);
    return true;
}

static void end_with(struct test_etcd *t, unsigned i, int signal_number)
{
    if (!t->at[i].pid)
        return;
    kill(t->at[i].pid, signal_number);
    waitpid(t->at[i].pid, NULL, 0);
    t->at[i].pid = 0;
}

void test_etcd_kill(struct test_etcd *t, unsigned i)
{
    end_with(t, i, SIGKILL);
}

void test_etcd_terminate(struct test_etcd *t, unsigned i)
{
    end_with(t, i, SIGTERM);
}

void test_etcd_freeze(const struct test_etcd *t, unsigned i)
{
    kill(t->at[i].pid, SIGSTOP);
}

void test_etcd_thaw(const struct test_etcd *t, unsigned i)
{
    kill(t->at[i].pid, SIGCONT);
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *f)
{
    (void)s, (void)kind, (void)f;
    return remove(path);
}

void test_etcd_empty(struct test_etcd *t)
{
    char dir[128];

    for (unsigned i = 0; i < t->n; i++) {
        test_etcd_kill(t, i);
        snprintf(dir, sizeof dir, "%s/n%u", t->dir, i);
        nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
    for (unsigned i = 0; i < t->n; i++)
        test_etcd_run(t, i);
    for (unsigned i = 0; i < t->n; i++)
        test_etcd_await(t, i);
}

void test_etcd_stop(struct test_etcd *t)
{
    for (unsigned i = 0; i < t->n; i++)
        test_etcd_kill(t, i);
    nftw(t->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void test_etcd_url(const struct test_etcd *t, const char *root, char *into, size_t len)
{
    size_t n = (size_t)snprintf(into, len, "etcd:");

    for (unsigned i = 0; i < t->n; i++)
        n +=
            (size_t)snprintf(into + n, len - n, "%s%s://127.0.0.1:%u", i ? "," : "",
                             t->tls ? "https" : "http", t->tls ? t->at[i].secure : t->at[i].client);
    snprintf(into + n, len - n, "%s", root);
}
