// The end of a child and its SIGCHLD are one thing: whoever gets the signal finds the child, and when the child was waited for the signal has come. And two threads
// never wait for the same child.
#include "../check.h"

#include <pthread.h>

#define ROUNDS 400

static volatile sig_atomic_t signalled;

static void note(int number)
{
    (void)number;
    signalled = 1;
}

// As shells do it: look, then sleep until SIGCHLD says to look again. Where the signal comes too early this sleeps for ever.
static int wait_by_signal(void)
{
    sigset_t all, old;
    int status;
    for (;;) {
        signalled = 0;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid != 0)
            return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 3;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, &old);
        while (!signalled)
            sigsuspend(&old);
        sigprocmask(SIG_SETMASK, &old, NULL);
    }
}

static int waited;

static void *wait_for_all(void *argument)
{
    (void)argument;
    while (waitpid(-1, NULL, 0) > 0)
        __atomic_fetch_add(&waited, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

int main(void)
{
    struct sigaction action = { .sa_handler = note };
    sigaction(SIGCHLD, &action, NULL);
    int found = 0;
    for (int i = 0; i < ROUNDS; i++) {
        if (fork() == 0)
            _exit(3);
        found += wait_by_signal();
    }
    CHECK("found-by-signal", found);

    sigset_t child, pending;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    int came = 0;
    for (int i = 0; i < ROUNDS; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        // Looks without sleeping, so that it sees the child as early as it can be seen.
        while (waitpid(pid, NULL, WNOHANG) == 0)
            ;
        sigpending(&pending);
        came += sigismember(&pending, SIGCHLD);
        struct timespec none = { 0, 0 };
        sigtimedwait(&child, NULL, &none);
    }
    CHECK("signal-came-before-wait-returned", came);

    int children = 0;
    for (int i = 0; i < ROUNDS / 8; i++) {
        pthread_t others[3];
        for (int j = 0; j < 8; j++, children++)
            if (fork() == 0)
                _exit(0);
        for (int j = 0; j < 3; j++)
            REQUIRE(pthread_create(&others[j], NULL, wait_for_all, NULL) == 0);
        for (int j = 0; j < 3; j++)
            pthread_join(others[j], NULL);
    }
    CHECK_TRUE("each-waited-for-once", waited == children);
    return 0;
}
