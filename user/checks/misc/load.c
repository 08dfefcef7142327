// The load averages: sysinfo and /proc/loadavg say the same, and what runs for a moment hardly moves them.
#include "../check.h"
#include <sys/sysinfo.h>

static double shown(int which)
{
    double loads[3] = { -1, -1, -1 };
    sscanf(check_read_file("/proc/loadavg"), "%lf %lf %lf", &loads[0], &loads[1], &loads[2]);
    return loads[which];
}

static double counted(int which)
{
    struct sysinfo info;
    REQUIRE(sysinfo(&info) == 0);
    return (double)info.loads[which] / (1 << SI_LOAD_SHIFT);
}

static int agree(int which)
{
    double before = counted(which), text = shown(which), difference = before - text;
    return difference < 0.011 && difference > -0.011;
}

// Whether three processes that compute for a moment move the average of fifteen minutes by less than 0.2: all at once would be 3.
static int is_slow(void)
{
    pid_t pids[3];
    double before = counted(2);
    for (int i = 0; i < 3; i++) {
        pids[i] = check_fork();
        if (pids[i] == 0)
            for (;;)
                ;
    }
    check_sleep_ms(50);
    double after = counted(2);
    for (int i = 0; i < 3; i++) {
        kill(pids[i], SIGKILL);
        check_wait(pids[i]);
    }
    return after - before < 0.2;
}

int main(void)
{
    static const char *const names[] = { "one-agrees", "five-agrees", "fifteen-agrees" };
    for (int i = 0; i < 3; i++)
        CHECK_SOON(names[i], agree(i));
    CHECK_TRUE("not-negative", counted(0) >= 0 && counted(1) >= 0 && counted(2) >= 0);
    CHECK_SOON("slow", is_slow());
    return 0;
}
