// fork: what a child inherits and what is its own.
#include "../check.h"
#include <sys/resource.h>
#include <sys/times.h>

static int shared_value = 1;

static void handler(int number)
{
    (void)number;
}

int main(void)
{
    int fds[2];
    REQUIRE(pipe(fds) == 0);
    pid_t me = getpid();
    CHECK_CHILD("parent-id", _exit(getppid() == me ? 5 : 6));
    CHECK_CHILD("own-id", _exit(getpid() != me ? 5 : 6));
    CHECK_CHILD("memory-is-a-copy", shared_value = 2; _exit(shared_value));
    CHECK("parent-memory", shared_value);
    CHECK_CHILD("descriptors", _exit(write(fds[1], "c", 1) == 1 ? 5 : 6));
    char c = 0;
    CHECK_TRUE("through-inherited-pipe", read(fds[0], &c, 1) == 1 && c == 'c');
    CHECK_CHILD("close-in-child", close(fds[0]));
    CHECK_TRUE("open-in-parent", fcntl(fds[0], F_GETFD) == 0);
    signal(SIGUSR1, handler);
    signal(SIGUSR2, SIG_IGN);
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGHUP);
    REQUIRE(sigprocmask(SIG_SETMASK, &mask, NULL) == 0);
    CHECK_CHILD("handlers", struct sigaction a; sigaction(SIGUSR1, NULL, &a); struct sigaction b; sigaction(SIGUSR2, NULL, &b);
                _exit((a.sa_handler == handler) * 2 + (b.sa_handler == SIG_IGN)));
    CHECK_CHILD("mask", sigset_t now; sigprocmask(SIG_BLOCK, NULL, &now); _exit(sigismember(&now, SIGHUP) * 2 + sigismember(&now, SIGINT)));
    raise(SIGHUP);
    CHECK_CHILD("pending-is-empty", sigset_t now; sigpending(&now); _exit(sigismember(&now, SIGHUP)));
    signal(SIGHUP, SIG_IGN);
    umask(027);
    CHECK_CHILD("umask", _exit(umask(0)));
    REQUIRE(setpriority(PRIO_PROCESS, 0, 19) == 0);
    CHECK_CHILD("nice", _exit(getpriority(PRIO_PROCESS, 0)));
    pid_t pid = fork();
    if (pid == 0) {
        // An alarm is not inherited.
        _exit(alarm(10) == 0 ? 5 : 6);
    }
    CHECK_STATUS("alarm", check_wait(pid));
    CHECK_TRUE("alarm-still-here", alarm(CHECK_LIMIT) > 0);
    CHECK_CHILD("cpu-time-starts-at-zero", struct tms t; times(&t); _exit(t.tms_cutime + t.tms_cstime + t.tms_utime > 3));
    // Many children at once, all collected.
    for (int i = 0; i < 40; i++) {
        pid = check_fork();
        if (pid == 0)
            _exit(i);
    }
    int sum = 0, status, count = 0;
    while (wait(&status) > 0) {
        count++;
        sum += WEXITSTATUS(status);
    }
    CHECK("children", count);
    CHECK("sum-of-codes", sum);
    CHECK("no-more", wait(&status));
    // Grandchildren of an ended child are not ours to wait for.
    pid = check_fork();
    if (pid == 0) {
        if (check_fork() == 0) {
            check_sleep_ms(30);
            _exit(0);
        }
        _exit(9);
    }
    CHECK_STATUS("middle", check_wait(pid));
    CHECK("not-our-grandchild", wait(&status));
    return 0;
}
