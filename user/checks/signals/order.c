// Real-time signals queue, carry values and come lowest number first; standard signals come before them.
#include "../check.h"

static char order[256];

static void note(int number, siginfo_t *info, void *context)
{
    (void)context;
    char part[32];
    if (number < SIGRTMIN)
        snprintf(part, sizeof part, "std ");
    else
        snprintf(part, sizeof part, "rt%d=%d ", number - SIGRTMIN, info->si_value.sival_int);
    strcat(order, part);
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = note, .sa_flags = SA_SIGINFO };
    sigfillset(&action.sa_mask);
    for (int i = 0; i < 4; i++)
        REQUIRE(sigaction(SIGRTMIN + i, &action, NULL) == 0);
    REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &all, NULL);
    static const int plan[][2] = { { 2, 10 }, { 0, 11 }, { 2, 12 }, { 1, 13 }, { 0, 14 }, { 0, 15 } };
    for (size_t i = 0; i < sizeof plan / sizeof plan[0]; i++)
        REQUIRE(sigqueue(getpid(), SIGRTMIN + plan[i][0], (union sigval){ .sival_int = plan[i][1] }) == 0);
    kill(getpid(), SIGUSR1);
    sigprocmask(SIG_SETMASK, &none, NULL);
    // With full handler masks each handler runs to its end before the next signal is taken.
    CHECK_STR("order", order);
    CHECK("queue-probe", sigqueue(getpid(), 0, (union sigval){ 0 }));
    CHECK("queue-bad-number", sigqueue(getpid(), 65, (union sigval){ 0 }));
    CHECK("queue-no-process", sigqueue(0x3fffffff, SIGUSR1, (union sigval){ 0 }));
    // A forged si_code for another process is refused.
    siginfo_t forged = { .si_signo = SIGRTMIN, .si_code = SI_USER };
    pid_t child = check_fork();
    if (child == 0) {
        sigprocmask(SIG_SETMASK, &none, NULL);
        pause();
        _exit(0);
    }
    CHECK("forged-code", syscall(SYS_rt_sigqueueinfo, child, SIGUSR1, &forged));
    kill(child, SIGKILL);
    check_wait(child);
    return 0;
}
