// sigtimedwait, sigwaitinfo, signalfd and pause: taking signals without handlers.
#include "../check.h"
#include <poll.h>
#include <sys/signalfd.h>

static void nothing(int number)
{
    (void)number;
}

int main(void)
{
    sigset_t set, one;
    siginfo_t info;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct timespec none = { 0, 0 }, brief = { 0, 30000000 }, bad = { 0, -1 };
    CHECK("nothing", sigtimedwait(&set, &info, &none));
    long before = check_now_ms();
    CHECK("timeout", sigtimedwait(&set, &info, &brief));
    CHECK_TRUE("waited", check_now_ms() - before >= 29);
    CHECK("bad-time", sigtimedwait(&set, &info, &bad));
    raise(SIGUSR2);
    raise(SIGUSR1);
    CHECK("lowest-first", sigtimedwait(&set, &info, &none));
    CHECK("info", info.si_signo);
    CHECK("then", sigtimedwait(&set, NULL, &none));
    CHECK("empty", sigtimedwait(&set, NULL, &none));
    sigqueue(getpid(), SIGRTMIN, (union sigval){ .sival_int = 5 });
    sigqueue(getpid(), SIGRTMIN, (union sigval){ .sival_int = 6 });
    CHECK("value-first", sigwaitinfo(&set, &info) == SIGRTMIN ? info.si_value.sival_int : -1);
    CHECK("value-second", sigwaitinfo(&set, &info) == SIGRTMIN ? info.si_value.sival_int : -1);
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    pid_t parent = getpid();
    pid_t child = check_fork();
    if (child == 0) {
        check_sleep_ms(30);
        kill(parent, SIGUSR1);
        _exit(0);
    }
    int got = 0;
    CHECK("sigwait", sigwait(&one, &got));
    CHECK("sigwait-number", got);
    check_wait(child);
    // A signal outside the set that has a handler interrupts.
    signal(SIGALRM, nothing);
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    ualarm(20000, 20000);
    CHECK("interrupted", syscall(SYS_rt_sigtimedwait, &one, NULL, NULL, 8));
    CHECK("pause", pause());
    ualarm(0, 0);
    signal(SIGALRM, SIG_DFL);
    alarm(CHECK_LIMIT);

    int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    REQUIRE(fd >= 0);
    struct signalfd_siginfo record;
    CHECK("signalfd-empty", read(fd, &record, sizeof record));
    struct pollfd p = { fd, POLLIN, 0 };
    CHECK("signalfd-not-ready", poll(&p, 1, 0));
    raise(SIGUSR1);
    CHECK("signalfd-ready", poll(&p, 1, 0));
    CHECK("signalfd-read", read(fd, &record, sizeof record));
    CHECK("signalfd-number", record.ssi_signo);
    CHECK("signalfd-pid", record.ssi_pid == (uint32_t)getpid());
    sigqueue(getpid(), SIGRTMIN, (union sigval){ .sival_int = 8 });
    sigqueue(getpid(), SIGRTMIN, (union sigval){ .sival_int = 9 });
    struct signalfd_siginfo records[4];
    CHECK("signalfd-two", read(fd, records, sizeof records) / (long)sizeof record);
    CHECK("signalfd-values", records[0].ssi_int * 10 + records[1].ssi_int);
    CHECK("signalfd-short", read(fd, &record, 10));
    CHECK("signalfd-change", signalfd(fd, &one, 0) == fd);
    raise(SIGUSR2);
    CHECK("signalfd-not-in-set", read(fd, &record, sizeof record));
    CHECK("signalfd-bad-flags", signalfd(-1, &set, 1));
    CHECK("signalfd-wrong-descriptor", signalfd(0, &set, 0));
    CHECK("left-pending", sigtimedwait(&set, NULL, &none));
    return 0;
}
