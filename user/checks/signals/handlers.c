// sigaction and its flags.
#include "../check.h"

static volatile sig_atomic_t calls, depth, deepest, mask_inside, other_inside;

static void note(int number)
{
    calls++;
    depth++;
    if (depth > deepest)
        deepest = depth;
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    mask_inside = sigismember(&now, number);
    other_inside = sigismember(&now, SIGUSR2);
    if (calls == 1)
        raise(number);
    depth--;
}

static void reset(void)
{
    calls = depth = deepest = 0;
}

int main(void)
{
    struct sigaction action = { .sa_handler = note }, old;
    CHECK("default", sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_handler == SIG_DFL);
    CHECK("install", sigaction(SIGUSR1, &action, &old));
    CHECK("read-back", sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_handler == note);
    raise(SIGUSR1);
    CHECK("calls", calls);
    CHECK("not-nested", deepest);
    CHECK("blocked-inside", mask_inside);
    action.sa_flags = SA_NODEFER;
    sigaction(SIGUSR1, &action, NULL);
    reset();
    raise(SIGUSR1);
    CHECK("nodefer-nests", deepest);
    CHECK("nodefer-not-blocked", mask_inside);
    action.sa_flags = 0;
    sigaddset(&action.sa_mask, SIGUSR2);
    sigaction(SIGUSR1, &action, NULL);
    reset();
    raise(SIGUSR1);
    CHECK("mask-blocks-other", other_inside);
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    CHECK("mask-restored", sigismember(&now, SIGUSR1) + sigismember(&now, SIGUSR2));
    action = (struct sigaction){ .sa_handler = note, .sa_flags = SA_RESETHAND | SA_NODEFER };
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR1, NULL, &old);
    CHECK("flags-kept", (old.sa_flags & (SA_RESETHAND | SA_NODEFER)) == (int)(SA_RESETHAND | SA_NODEFER));
    calls = 5;
    raise(SIGUSR1);
    CHECK("reset-ran-once", calls);
    sigaction(SIGUSR1, NULL, &old);
    CHECK("reset-to-default", old.sa_handler == SIG_DFL);
    CHECK_CHILD("second-kills", raise(SIGUSR1));
    CHECK("kill-cannot-be-caught", sigaction(SIGKILL, &action, NULL));
    CHECK("stop-cannot-be-caught", sigaction(SIGSTOP, &action, NULL));
    CHECK("kill-can-be-read", sigaction(SIGKILL, NULL, &old));
    CHECK("number-zero", syscall(SYS_rt_sigaction, 0, NULL, NULL, 8));
    CHECK("number-65", syscall(SYS_rt_sigaction, 65, NULL, NULL, 8));
    CHECK("bad-set-size", syscall(SYS_rt_sigaction, SIGUSR1, NULL, NULL, 16));
    signal(SIGUSR1, SIG_IGN);
    CHECK_CHILD("ignored", raise(SIGUSR1); _exit(6));
    // A signal that is ignored is dropped even while it is blocked and pending.
    sigset_t set, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    signal(SIGUSR1, note);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR1);
    sigpending(&pending);
    CHECK("pending", sigismember(&pending, SIGUSR1));
    signal(SIGUSR1, SIG_IGN);
    sigpending(&pending);
    CHECK("dropped-by-ignore", sigismember(&pending, SIGUSR1));
    // The System V way: signal() twice gives back the first handler.
    signal(SIGUSR2, note);
    CHECK("signal-returns-old", signal(SIGUSR2, SIG_DFL) == note);
    return 0;
}
