// poll and ppoll: readiness of pipes and files, time-outs, interruption.
#include "../check.h"
#include <poll.h>
#include <sys/resource.h>

static volatile sig_atomic_t hits;

static void count(int number)
{
    hits += number == SIGUSR1;
}

int main(void)
{
    int fds[2];
    char c;
    REQUIRE(pipe(fds) == 0);
    struct pollfd p[3] = { { fds[0], POLLIN, 0 }, { fds[1], POLLOUT, 0 }, { -1, POLLIN, 99 } };
    CHECK("empty-pipe", poll(p, 3, 0));
    CHECK("reader", p[0].revents);
    CHECK("writer", p[1].revents);
    CHECK("negative-is-skipped", p[2].revents);
    REQUIRE(write(fds[1], "x", 1) == 1);
    CHECK("with-data", poll(p, 2, 0));
    CHECK("reader-ready", p[0].revents);
    REQUIRE(read(fds[0], &c, 1) == 1);
    long before = check_now_ms();
    CHECK("timeout", poll(p, 1, 30));
    long took = check_now_ms() - before;
    CHECK_TRUE("waited-enough", took >= 30);
    // Woken by a writer.
    pid_t writer = check_fork();
    if (writer == 0) {
        check_sleep_ms(30);
        REQUIRE(write(fds[1], "y", 1) == 1);
        _exit(0);
    }
    CHECK("woken", poll(p, 1, -1));
    CHECK("woken-events", p[0].revents);
    check_wait(writer);
    REQUIRE(read(fds[0], &c, 1) == 1);
    // Hang-up and error.
    close(fds[1]);
    CHECK("hang-up", poll(p, 1, 0));
    CHECK("hang-up-events", p[0].revents);
    p[0].events = 0;
    CHECK("hang-up-without-events", poll(p, 1, 0));
    REQUIRE(pipe(fds) == 0);
    close(fds[0]);
    p[0] = (struct pollfd){ fds[1], POLLOUT, 0 };
    CHECK("broken", poll(p, 1, 0));
    CHECK("broken-events", p[0].revents);
    int file = open("/dev/null", O_RDWR);
    p[0] = (struct pollfd){ file, POLLIN | POLLOUT | POLLPRI, 0 };
    CHECK("null", poll(p, 1, 0));
    CHECK("null-events", p[0].revents);
    check_write_file("f", "");
    p[0] = (struct pollfd){ open("f", O_RDONLY), POLLIN | POLLOUT, 0 };
    CHECK("regular", poll(p, 1, 0));
    CHECK("regular-events", p[0].revents);
    p[0] = (struct pollfd){ 99, POLLIN, 0 };
    CHECK("closed", poll(p, 1, -1));
    CHECK("closed-events", p[0].revents);
    CHECK("nothing", poll(NULL, 0, 10));
    struct rlimit limit = { 16, 16 };
    CHECK_CHILD("too-many", REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0); struct pollfd *many = calloc(17, sizeof *many);
                CHECK("refused", poll(many, 17, 0)));
    // A signal interrupts; ppoll lets it in only while waiting.
    struct sigaction action = { .sa_handler = count, .sa_flags = SA_RESTART };
    REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
    pid_t parent = getpid();
    pid_t sender = check_fork();
    if (sender == 0)
        for (;;) {
            check_sleep_ms(20);
            kill(parent, SIGUSR1);
        }
    CHECK("interrupted", poll(NULL, 0, -1));
    CHECK_TRUE("handled", hits > 0);
    kill(sender, SIGKILL);
    check_wait(sender);
    hits = 1;
    sigset_t block, none;
    sigemptyset(&none);
    sigemptyset(&block);
    sigaddset(&block, SIGUSR1);
    REQUIRE(sigprocmask(SIG_BLOCK, &block, NULL) == 0);
    raise(SIGUSR1);
    CHECK("blocked", hits);
    struct timespec second = { 1, 0 };
    CHECK("ppoll-unblocks", ppoll(NULL, 0, &second, &none));
    CHECK("handled-inside", hits);
    sigset_t now;
    REQUIRE(sigprocmask(SIG_BLOCK, NULL, &now) == 0);
    CHECK("mask-restored", sigismember(&now, SIGUSR1));
    struct timespec bad = { 0, 1000000000 };
    CHECK("ppoll-bad-time", ppoll(NULL, 0, &bad, NULL));
    return 0;
}
