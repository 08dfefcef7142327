// Interrupted calls: with SA_RESTART they go on, without they end with EINTR.
#include "../check.h"
#include <sys/mman.h>
#include <sys/time.h>

// In memory that is shared with the children, which act once the signal has come.
static volatile int *hits;

static void note(int number)
{
    *hits += number == SIGALRM;
}

// Lets SIGALRM come every 20 ms from now on.
static void arm(int flags)
{
    struct sigaction action = { .sa_handler = note, .sa_flags = flags };
    REQUIRE(sigaction(SIGALRM, &action, NULL) == 0);
    *hits = 0;
    struct itimerval timer = { { 0, 20000 }, { 0, 20000 } };
    REQUIRE(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void disarm(void)
{
    struct itimerval timer = { { 0, 0 }, { 0, 0 } };
    REQUIRE(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

// A child that after the first signals does one thing and ends.
enum deed { WRITE, DRAIN, END };

static pid_t later(enum deed deed, int fd)
{
    pid_t pid = check_fork();
    if (pid == 0) {
        static char buffer[65536];
        while (*hits < 2)
            check_sleep_ms(1);
        check_sleep_ms(10);
        if (deed == DRAIN)
            _exit(read(fd, buffer, sizeof buffer) > 0 ? 0 : 1);
        if (deed == WRITE)
            _exit(write(fd, "x", 1) == 1 ? 0 : 1);
        _exit(5);
    }
    return pid;
}

int main(void)
{
    int fds[2], status;
    char c;
    static char block[65536];
    hits = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(hits != MAP_FAILED && pipe(fds) == 0);
    arm(0);
    CHECK("nothing-to-restart", syscall(SYS_restart_syscall));
    CHECK("read", read(fds[0], &c, 1));
    disarm();
    CHECK_TRUE("read-handled", *hits > 0);
    *hits = 0;
    pid_t child = later(WRITE, fds[1]);
    arm(SA_RESTART);
    CHECK("read-restarted", read(fds[0], &c, 1));
    disarm();
    CHECK_STATUS("read-writer", check_wait(child));
    REQUIRE(write(fds[1], block, sizeof block) == sizeof block);
    arm(0);
    CHECK("write", write(fds[1], "y", 1));
    disarm();
    *hits = 0;
    child = later(DRAIN, fds[0]);
    arm(SA_RESTART);
    CHECK("write-restarted", write(fds[1], "y", 1));
    disarm();
    CHECK_STATUS("write-drainer", check_wait(child));
    // A write that had begun reports what it did: 65536 bytes fit into the empty pipe.
    REQUIRE(read(fds[0], block, 1) == 1);
    arm(SA_RESTART);
    static char more[70000];
    CHECK("partial-write", write(fds[1], more, sizeof more));
    disarm();
    child = check_fork();
    if (child == 0) {
        pause();
        _exit(5);
    }
    arm(0);
    CHECK("wait", waitpid(child, &status, 0));
    disarm();
    kill(child, SIGKILL);
    check_wait(child);
    *hits = 0;
    child = later(END, -1);
    arm(SA_RESTART);
    CHECK_TRUE("wait-restarted", waitpid(child, &status, 0) == child);
    CHECK_STATUS("waited-for", status);
    // Sleeping is never restarted, and tells what is left.
    struct timespec long_sleep = { 1000, 0 }, left = { 0, 0 };
    arm(SA_RESTART);
    CHECK("nanosleep", nanosleep(&long_sleep, &left));
    CHECK_TRUE("left", left.tv_sec > 0 && left.tv_sec < 1000);
    arm(SA_RESTART);
    CHECK("clock-nanosleep", clock_nanosleep(CLOCK_MONOTONIC, 0, &long_sleep, &left));
    arm(SA_RESTART);
    CHECK("pause", pause());
    disarm();
    // An ignored signal interrupts nothing.
    signal(SIGUSR1, SIG_IGN);
    pid_t me = getpid();
    child = check_fork();
    if (child == 0) {
        check_sleep_ms(10);
        kill(me, SIGUSR1);
        _exit(0);
    }
    struct timespec brief = { 0, 40000000 };
    CHECK("ignored", nanosleep(&brief, NULL));
    check_wait(child);
    // Stop and continue do not interrupt a sleep visibly.
    long nap_ms = 80;
    do {
        child = check_fork();
        if (child == 0) {
            struct timespec nap = { nap_ms / 1000, nap_ms % 1000 * 1000000 };
            _exit(nanosleep(&nap, NULL) == 0 ? 3 : 4);
        }
        check_sleep_ms(20);
        kill(child, SIGSTOP);
        REQUIRE(waitpid(child, &status, WUNTRACED) == child);
        // On a busy machine the sleep can be over before the stop.
        nap_ms *= 2;
    } while (!WIFSTOPPED(status));
    kill(child, SIGCONT);
    CHECK_STATUS("stopped-sleep", check_wait(child));
    alarm(CHECK_LIMIT);
    return 0;
}
