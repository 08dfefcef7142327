// What reaches many: a key on a terminal, the end of a session, a stop and its end.
#include "../check.h"
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

enum { MANY = 200 };

static int bytes[2];
static int readers;

static void *read_one(void *argument)
{
    char byte;
    if (read(bytes[0], &byte, 1) == 1)
        __atomic_add_fetch(&readers, 1, __ATOMIC_RELAXED);
    return argument;
}

static void run_threads(int ready)
{
    pthread_t threads[MANY];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int i = 0; i < MANY; i++)
        if (pthread_create(&threads[i], &small, read_one, NULL) != 0)
            _exit(1);
    if (write(ready, "r", 1) != 1)
        _exit(2);
    for (int i = 0; i < MANY; i++)
        pthread_join(threads[i], NULL);
    _exit(readers == MANY ? 3 : 4);
}

// Children of the caller that sleep until a signal ends them; all of them do.
static void start_sleepers(void)
{
    int asleep[2];
    char byte = 0;
    REQUIRE(pipe(asleep) == 0);
    for (int i = 0; i < MANY; i++)
        if (check_fork() == 0) {
            signal(SIGINT, SIG_DFL);
            signal(SIGHUP, SIG_DFL);
            alarm(0);
            REQUIRE(write(asleep[1], &byte, 1) == 1);
            for (;;)
                pause();
        }
    for (int i = 0; i < MANY; i++)
        REQUIRE(read(asleep[0], &byte, 1) == 1);
}

// How many children that signal ended.
static int ended_by(int number)
{
    int status, count = 0;
    for (int i = 0; i < MANY; i++)
        if (waitpid(-1, &status, 0) > 0)
            count += WIFSIGNALED(status) && WTERMSIG(status) == number;
    return count;
}

int main(void)
{
    int ready[2], go[2], status;
    char byte;
    REQUIRE(pipe(bytes) == 0 && pipe(ready) == 0 && pipe(go) == 0);
    pid_t child = check_fork();
    if (child == 0)
        run_threads(ready[1]);
    REQUIRE(read(ready[0], &byte, 1) == 1);
    for (int round = 0; round < 3; round++) {
        CHECK("stop", kill(child, SIGSTOP));
        REQUIRE(waitpid(child, &status, WUNTRACED) == child);
        CHECK_TRUE("stopped", WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
        CHECK("continue", kill(child, SIGCONT));
        REQUIRE(waitpid(child, &status, WCONTINUED) == child);
        CHECK_TRUE("continued", WIFCONTINUED(status));
    }
    // The next stop comes before all have gone on.
    CHECK("stop-and-continue", kill(child, SIGSTOP) | kill(child, SIGCONT) | kill(child, SIGSTOP));
    REQUIRE(waitpid(child, &status, WUNTRACED) == child);
    CHECK_TRUE("stopped-again", WIFSTOPPED(status));
    char all[MANY] = { 0 };
    CHECK("write", write(bytes[1], all, sizeof all));
    CHECK("go-on", kill(child, SIGCONT));
    CHECK_STATUS("threads", check_wait(child));

    REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    REQUIRE(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    child = check_fork();
    if (child == 0) {
        signal(SIGINT, SIG_IGN);
        REQUIRE(setsid() > 0);
        int terminal = open(ptsname(master), O_RDWR);
        REQUIRE(terminal >= 0 && ioctl(terminal, TIOCSCTTY, 0) == 0);
        start_sleepers();
        REQUIRE(write(ready[1], "r", 1) == 1);
        int interrupted = ended_by(SIGINT);
        CHECK("interrupted", interrupted);
        start_sleepers();
        REQUIRE(write(ready[1], "r", 1) == 1 && read(go[0], &byte, 1) == 1);
        _exit(5);
    }
    REQUIRE(read(ready[0], &byte, 1) == 1);
    CHECK("key", write(master, "\x03", 1));
    REQUIRE(read(ready[0], &byte, 1) == 1 && write(go[1], "g", 1) == 1);
    CHECK_STATUS("leader", check_wait(child));
    CHECK("hung-up", ended_by(SIGHUP));
    return 0;
}
