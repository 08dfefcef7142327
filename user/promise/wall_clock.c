// The wall clock can be set and steered. (On Linux this would change the machine that runs it; in a machine of its own, Linux 6.1 prints the same.)
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME.
#define WAIT_BITSET_BY_WALL_CLOCK (9 | 256)

static void say(const char *what, int holds)
{
    printf("%s: %s\n", what, holds ? "yes" : "no");
}

static struct timespec now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return time;
}

static int set(time_t seconds)
{
    struct timespec time = { seconds, 0 };
    return clock_settime(CLOCK_REALTIME, &time);
}

// Sleeps until the wall clock shows what it does in an hour; the parent sets it.
static pid_t sleeper(int kind, time_t until)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct timespec time = { until, 0 };
    if (kind == 0)
        _exit(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &time, NULL));
    if (kind == 1) {
        static uint32_t word;
        long result = syscall(SYS_futex, &word, WAIT_BITSET_BY_WALL_CLOCK, 0, &time, NULL, ~0u);
        _exit(result == -1 && errno == ETIMEDOUT ? 0 : 1);
    }
    timer_t timer;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct itimerspec spec = { { 0, 0 }, time };
    timer_create(CLOCK_REALTIME, NULL, &timer);
    timer_settime(timer, TIMER_ABSTIME, &spec, NULL);
    siginfo_t info;
    _exit(sigwaitinfo(&set, &info) == SIGALRM && info.si_code == SI_TIMER ? 0 : 1);
}

static int steer(unsigned modes, struct timex *with)
{
    with->modes = modes;
    return adjtimex(with);
}

int main(void)
{
    alarm(100);
    setbuf(stdout, NULL);
    time_t start = now().tv_sec;
    struct timespec before_1970 = { -1, 0 }, odd = { start, 1000000000 };
    say("no time before 1970", clock_settime(CLOCK_REALTIME, &before_1970) == -1 && errno == EINVAL);
    say("nor what is none", clock_settime(CLOCK_REALTIME, &odd) == -1 && errno == EINVAL);
    say("nor before the machine was started in 1970", set(0) == -1 && errno == EINVAL);
    static const char *const names[] = { "sleep", "futex", "timer" };
    for (int kind = 0; kind < 3; kind++) {
        pid_t pid = sleeper(kind, now().tv_sec + 3600);
        struct timespec short_time = { 0, 50000000 };
        nanosleep(&short_time, NULL);
        int status = 0, early = waitpid(pid, &status, WNOHANG) != 0;
        int is_set = set(now().tv_sec + 3601) == 0;
        waitpid(pid, &status, 0);
        printf("%s until a time that comes sooner: early %d, set %d, status %d\n", names[kind], early, is_set, status);
    }
    say("the clock shows it", now().tv_sec >= start + 3 * 3600);

    int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
    struct itimerspec later = { { 0, 0 }, { now().tv_sec + 7200, 0 } };
    timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &later, NULL);
    struct pollfd poll_fd = { fd, POLLIN, 0 };
    uint64_t count;
    say("a timer descriptor is not ready", poll(&poll_fd, 1, 0) == 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(poll(&poll_fd, 1, 60000) == 1 ? 0 : 1);
    struct timespec short_time = { 0, 50000000 };
    nanosleep(&short_time, NULL);
    set(start);
    int status = 1;
    waitpid(pid, &status, 0);
    say("who waits for it is woken when the clock is set", status == 0);
    say("reading it is ECANCELED", read(fd, &count, 8) == -1 && errno == ECANCELED);
    say("once", read(fd, &count, 8) == -1 && errno == EAGAIN);
    say("relative time goes on by itself", ({
        struct itimerspec soon = { { 0, 0 }, { 3600, 0 } };
        timerfd_settime(fd, 0, &soon, NULL);
        set(now().tv_sec + 7200);
        read(fd, &count, 8) == -1 && errno == EAGAIN;
    }));
    set(start);

    struct timezone zone = { 60, 1 }, told = { 0, 0 };
    // The first one would move the clock, unless it is this.
    syscall(SYS_settimeofday, NULL, &told);
    int is_kept = syscall(SYS_settimeofday, NULL, &zone) == 0 && syscall(SYS_gettimeofday, NULL, &told) == 0;
    say("a time zone is kept", is_kept && told.tz_minuteswest == 60);
    zone.tz_minuteswest = 901;
    say("if there is such a one", syscall(SYS_settimeofday, NULL, &zone) == -1 && errno == EINVAL);

    struct timex timex = { .freq = 100 << 16, .tick = 10500, .maxerror = 1000, .esterror = 500, .constant = 2 };
    printf("adjtimex: %d\n", steer(ADJ_FREQUENCY | ADJ_TICK | ADJ_MAXERROR | ADJ_ESTERROR | ADJ_TIMECONST, &timex));
    printf("frequency %ld, tick %ld, errors %ld and %ld, constant %ld\n", timex.freq, timex.tick, timex.maxerror, timex.esterror, timex.constant);
    struct timespec real[2], boot[2];
    clock_gettime(CLOCK_REALTIME, &real[0]);
    clock_gettime(CLOCK_MONOTONIC_RAW, &boot[0]);
    struct timespec second = { 1, 0 };
    nanosleep(&second, NULL);
    clock_gettime(CLOCK_REALTIME, &real[1]);
    clock_gettime(CLOCK_MONOTONIC_RAW, &boot[1]);
    double longer = (real[1].tv_sec - real[0].tv_sec + (real[1].tv_nsec - real[0].tv_nsec) / 1e9)
        / (boot[1].tv_sec - boot[0].tv_sec + (boot[1].tv_nsec - boot[0].tv_nsec) / 1e9);
    say("its seconds are longer by a twentieth", longer > 1.03 && longer < 1.07);
    timex = (struct timex){ .tick = 10000, .freq = 0 };
    steer(ADJ_FREQUENCY | ADJ_TICK, &timex);
    time_t seconds = now().tv_sec;
    timex = (struct timex){ .time = { 1000, 5 } };
    steer(ADJ_SETOFFSET, &timex);
    say("a step", now().tv_sec >= seconds + 1000 && now().tv_sec < seconds + 1060);
    timex = (struct timex){ .time = { 0, 1000000 } };
    say("no such step", steer(ADJ_SETOFFSET, &timex) == -1 && errno == EINVAL);

    // A leap second at the end of the day.
    time_t midnight = (start / 86400 + 1) * 86400;
    set(midnight - 2);
    timex = (struct timex){ .status = STA_PLL };
    steer(ADJ_STATUS, &timex);
    timex = (struct timex){ .status = 0 };
    steer(ADJ_STATUS, &timex);
    timex = (struct timex){ .status = STA_INS, .maxerror = 0 };
    steer(ADJ_STATUS | ADJ_MAXERROR, &timex);
    int states = 0;
    struct timespec last = now();
    int went_back = 0;
    for (;;) {
        timex = (struct timex){ 0 };
        states |= 1 << steer(0, &timex);
        struct timespec time = now();
        went_back |= time.tv_sec < last.tv_sec || (time.tv_sec == last.tv_sec && time.tv_nsec < last.tv_nsec);
        last = time;
        if (time.tv_sec >= midnight + 2)
            break;
        struct timespec pause = { 0, 20000000 };
        nanosleep(&pause, NULL);
    }
    printf("states of the leap second: %#x, tai %d\n", states, timex.tai);
    say("a second comes twice", went_back);
    timex = (struct timex){ .status = STA_UNSYNC };
    steer(ADJ_STATUS, &timex);
    set(start);
    return 0;
}
