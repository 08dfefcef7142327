// SA_SIGINFO: code, sender, status and value for each way a signal is made.
#include "../check.h"
#include <sys/time.h>

static siginfo_t last;
static volatile sig_atomic_t seen;

static void note(int number, siginfo_t *info, void *context)
{
    (void)context;
    last = *info;
    seen = number;
}

static void wait_for(int number)
{
    while (seen != number)
        check_sleep_ms(1);
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = note, .sa_flags = SA_SIGINFO };
    static const int numbers[] = { SIGUSR1, SIGCHLD, SIGALRM };
    for (int i = 0; i < 3; i++)
        REQUIRE(sigaction(numbers[i], &action, NULL) == 0);
    kill(getpid(), SIGUSR1);
    CHECK("kill-code", last.si_code);
    CHECK("kill-pid", last.si_pid == getpid());
    CHECK("kill-uid", last.si_uid);
    CHECK("kill-number", last.si_signo);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
    CHECK("tgkill-code", last.si_code);
    CHECK("tgkill-pid", last.si_pid == getpid());
    sigqueue(getpid(), SIGUSR1, (union sigval){ .sival_int = 77 });
    CHECK("queue-code", last.si_code);
    CHECK("queue-value", last.si_value.sival_int);
    CHECK("queue-pid", last.si_pid == getpid());
    pid_t child = check_fork();
    if (child == 0)
        _exit(33);
    wait_for(SIGCHLD);
    CHECK("child-code", last.si_code == CLD_EXITED);
    CHECK("child-status", last.si_status);
    CHECK("child-pid", last.si_pid == child);
    check_wait(child);
    seen = 0;
    child = check_fork();
    if (child == 0)
        raise(SIGKILL);
    wait_for(SIGCHLD);
    CHECK("killed-code", last.si_code == CLD_KILLED);
    CHECK("killed-status", last.si_status);
    check_wait(child);
    seen = 0;
    child = check_fork();
    if (child == 0)
        raise(SIGSTOP);
    wait_for(SIGCHLD);
    CHECK("stopped-code", last.si_code == CLD_STOPPED);
    CHECK("stopped-status", last.si_status);
    kill(child, SIGKILL);
    check_wait(child);
    struct itimerval timer = { { 0, 0 }, { 0, 10000 } };
    setitimer(ITIMER_REAL, &timer, NULL);
    wait_for(SIGALRM);
    CHECK("alarm-code", last.si_code == SI_KERNEL);
    CHECK("tgkill-bad-group", syscall(SYS_tgkill, 1, syscall(SYS_gettid), SIGUSR1));
    CHECK("tgkill-negative", syscall(SYS_tgkill, -1, syscall(SYS_gettid), SIGUSR1));
    CHECK("tkill", syscall(SYS_tkill, syscall(SYS_gettid), 0));
    CHECK("kill-bad-number", kill(getpid(), 65));
    CHECK("kill-negative-number", kill(getpid(), -1));
    return 0;
}
