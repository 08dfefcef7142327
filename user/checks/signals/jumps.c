// Leaving a handler by siglongjmp, nested handlers, and signals to many processes.
#include "../check.h"
#include <setjmp.h>

static sigjmp_buf back;
static char trace[64];

static void leave(int number)
{
    siglongjmp(back, number);
}

static void inner(int number)
{
    (void)number;
    strcat(trace, "i");
}

static void outer(int number)
{
    (void)number;
    strcat(trace, "(");
    raise(SIGUSR2);
    strcat(trace, ")");
}

int main(void)
{
    signal(SIGUSR1, leave);
    volatile int rounds = 0;
    sigset_t now;
    for (int i = 0; i < 3; i++)
        if (sigsetjmp(back, 1) == 0)
            raise(SIGUSR1);
        else
            rounds++;
    CHECK("jumps", rounds);
    sigprocmask(SIG_BLOCK, NULL, &now);
    CHECK("mask-restored-by-jump", sigismember(&now, SIGUSR1));
    if (sigsetjmp(back, 0) == 0)
        raise(SIGUSR1);
    sigprocmask(SIG_BLOCK, NULL, &now);
    CHECK("mask-kept-without", sigismember(&now, SIGUSR1));
    sigemptyset(&now);
    sigprocmask(SIG_SETMASK, &now, NULL);
    signal(SIGUSR1, outer);
    signal(SIGUSR2, inner);
    raise(SIGUSR1);
    CHECK_STR("nested", trace);
    // A signal to a group reaches each member.
    pid_t leader = check_fork();
    if (leader == 0) {
        setpgid(0, 0);
        pause();
        _exit(0);
    }
    setpgid(leader, leader);
    pid_t members[3];
    for (int i = 0; i < 3; i++) {
        members[i] = check_fork();
        if (members[i] == 0) {
            setpgid(0, leader);
            pause();
            _exit(0);
        }
        setpgid(members[i], leader);
    }
    CHECK("killpg", killpg(leader, SIGQUIT));
    CHECK_STATUS("leader", check_wait(leader));
    for (int i = 0; i < 3; i++)
        CHECK_STATUS("member", check_wait(members[i]));
    CHECK("kill-missing", kill(0x3fffffff, SIGTERM));
    CHECK("kill-group-missing", kill(-0x3fffffff, SIGTERM));
    // The end of a process by a signal while its handler runs.
    CHECK_CHILD("killed-in-handler", signal(SIGUSR1, (void (*)(int))exit); raise(SIGUSR1));
    return 0;
}
