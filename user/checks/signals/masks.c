// Blocking, pending, unblocking, sigsuspend.
#include "../check.h"

static char order[32];
static volatile sig_atomic_t count;

static void note(int number)
{
    order[count++] = number == SIGUSR1 ? '1' : number == SIGUSR2 ? '2' : number == SIGHUP ? 'h' : '?';
}

int main(void)
{
    sigset_t set, old, pending;
    signal(SIGUSR1, note);
    signal(SIGUSR2, note);
    signal(SIGHUP, note);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    CHECK("block", sigprocmask(SIG_BLOCK, &set, &old));
    CHECK("old-empty", sigismember(&old, SIGUSR1));
    raise(SIGUSR2);
    raise(SIGUSR1);
    raise(SIGUSR1);
    CHECK("none-delivered", count);
    CHECK("sigpending", sigpending(&pending));
    CHECK("pending", sigismember(&pending, SIGUSR1) * 10 + sigismember(&pending, SIGUSR2));
    // Standard signals do not queue; both are delivered before sigprocmask returns.
    CHECK("unblock", sigprocmask(SIG_UNBLOCK, &set, NULL));
    CHECK("delivered-once-each", count);
    sigpending(&pending);
    CHECK("nothing-pending", sigismember(&pending, SIGUSR1) + sigismember(&pending, SIGUSR2));
    // SIGKILL and SIGSTOP cannot be blocked.
    sigfillset(&set);
    sigprocmask(SIG_SETMASK, &set, NULL);
    sigprocmask(SIG_BLOCK, NULL, &old);
    CHECK("kill-not-blocked", sigismember(&old, SIGKILL) + sigismember(&old, SIGSTOP));
    CHECK("others-blocked", sigismember(&old, SIGTERM) + sigismember(&old, SIGRTMAX));
    CHECK_CHILD("kill-works", raise(SIGKILL));
    CHECK("bad-how", syscall(SYS_rt_sigprocmask, 9, &set, NULL, 8));
    CHECK("bad-how-without-set", syscall(SYS_rt_sigprocmask, 9, NULL, NULL, 8));
    CHECK("bad-size", syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, NULL, 4));
    // sigsuspend lets signals in and puts the mask back.
    count = 0;
    raise(SIGHUP);
    sigset_t all_but;
    sigfillset(&all_but);
    sigdelset(&all_but, SIGHUP);
    CHECK("sigsuspend", sigsuspend(&all_but));
    CHECK("handler-ran", count);
    sigprocmask(SIG_BLOCK, NULL, &old);
    CHECK("mask-back", sigismember(&old, SIGHUP));
    // Woken by a signal that comes later.
    pid_t parent = getpid();
    pid_t child = check_fork();
    if (child == 0) {
        check_sleep_ms(30);
        kill(parent, SIGUSR1);
        check_sleep_ms(30);
        kill(parent, SIGHUP);
        _exit(0);
    }
    CHECK("sigsuspend-waits", sigsuspend(&all_but));
    check_wait(child);
    CHECK("only-the-allowed", count);
    count = 0;
    memset(order, 0, sizeof order);
    sigemptyset(&set);
    sigprocmask(SIG_SETMASK, &set, NULL);
    CHECK_STR("the-other-afterwards", order);
    // A child that unblocks a fatal pending signal dies of it.
    CHECK_CHILD("fatal-on-unblock", sigset_t term; sigemptyset(&term); sigaddset(&term, SIGTERM); sigprocmask(SIG_BLOCK, &term, NULL);
                raise(SIGTERM); check_line("still: here\n"); sigprocmask(SIG_UNBLOCK, &term, NULL); check_line("never: reached\n"));
    return 0;
}
