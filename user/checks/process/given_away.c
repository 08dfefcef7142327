// The end of a process with many children of which each costs more than a new parent: a stopped one in a group that becomes orphaned is hung up, the threads of
// others want a signal, some have ended.
#include "../check.h"
#include <pthread.h>
#include <sys/prctl.h>

enum { CHILDREN = 150, TOLD = 20, THREADS = 6 };

static int ready[2];

static void *wants_to_know(void *unused)
{
    (void)unused;
    prctl(PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0);
    REQUIRE(write(ready[1], "t", 1) == 1);
    for (;;)
        pause();
}

static void make_stopped(void)
{
    pid_t child = check_fork();
    if (child == 0) {
        setpgid(0, 0);
        raise(SIGSTOP);
        _exit(0);
    }
    siginfo_t info;
    REQUIRE(waitid(P_PID, child, &info, WSTOPPED | WNOWAIT) == 0);
}

static void make_ended(void)
{
    pid_t child = check_fork();
    if (child == 0)
        _exit(3);
    siginfo_t info;
    REQUIRE(waitid(P_PID, child, &info, WEXITED | WNOWAIT) == 0);
}

static void make_told(void)
{
    if (check_fork() == 0) {
        pthread_t thread;
        for (int i = 1; i < THREADS; i++)
            REQUIRE(pthread_create(&thread, NULL, wants_to_know, NULL) == 0);
        wants_to_know(NULL);
    }
    char c;
    for (int i = 0; i < THREADS; i++)
        REQUIRE(read(ready[0], &c, 1) == 1);
}

int main(void)
{
    REQUIRE(pipe(ready) == 0);
    REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
    pid_t leader = check_fork();
    if (leader == 0) {
        REQUIRE(setsid() == getpid());
        pid_t parent = check_fork();
        if (parent == 0) {
            for (int i = 0; i < CHILDREN; i++) {
                make_stopped();
                if (i % 3 == 0)
                    make_ended();
            }
            for (int i = 0; i < TOLD; i++)
                make_told();
            _exit(0);
        }
        int status;
        REQUIRE(waitpid(parent, &status, 0) == parent);
        _exit(WEXITSTATUS(status));
    }
    int hung_up = 0, told = 0, ended = 0, status;
    pid_t pid;
    while ((pid = wait(&status)) > 0) {
        if (pid == leader)
            CHECK_STATUS("leader", status);
        else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP)
            hung_up++;
        else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1)
            told++;
        else if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
            ended++;
    }
    CHECK("hung-up", hung_up);
    CHECK("told", told);
    CHECK("ended-before", ended);
    return 0;
}
