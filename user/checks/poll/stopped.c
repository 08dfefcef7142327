// A call that waits is stopped and continued by job control: no handler runs, so it goes on.
#include "../check.h"
#include <poll.h>

static int data[2], started[2];

static long poll_limited(void)
{
    struct pollfd fd = {data[0], POLLIN, 0};
    return poll(&fd, 1, 100000);
}

static long poll_for_ever(void)
{
    struct pollfd fd = {data[0], POLLIN, 0};
    return poll(&fd, 1, -1);
}

// Waits until a process sleeps, or has ended.
static void until_asleep(pid_t pid)
{
    char path[64], state[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    do {
        strncpy(state, check_read_file(path), sizeof state - 1);
        char *end = strrchr(state, ')');
        if (end && (end[2] == 'S' || end[2] == 'Z'))
            return;
        check_sleep_ms(1);
    } while (1);
}

// Stops and continues a child that sleeps in `wait`, then lets that come to its end.
static void stop_in(const char *name, long (*wait)(void))
{
    REQUIRE(pipe(data) == 0 && pipe(started) == 0);
    pid_t child = check_fork();
    if (child == 0) {
        REQUIRE(write(started[1], "x", 1) == 1);
        long result = wait();
        _exit(result == 1 ? 1 : result == -1 ? 100 + errno : 99);
    }
    char byte;
    REQUIRE(read(started[0], &byte, 1) == 1);
    until_asleep(child);
    siginfo_t info;
    REQUIRE(kill(child, SIGSTOP) == 0 && waitid(P_PID, child, &info, WSTOPPED) == 0);
    REQUIRE(kill(child, SIGCONT) == 0);
    until_asleep(child);
    REQUIRE(write(data[1], "x", 1) == 1);
    CHECK_STATUS(name, check_wait(child));
    close(data[0]), close(data[1]), close(started[0]), close(started[1]);
}

int main(void)
{
    stop_in("poll-with-time-out", poll_limited);
    stop_in("poll-for-ever", poll_for_ever);
    return 0;
}
