// adjtimex and clock_adjtime: what they say of a clock that nobody changes, and who may not change it. Nothing here changes a clock.
#include "../check.h"
#include <sys/timex.h>

// Whether a clock is synchronised is the machine's own affair: only that its state is one of those there are.
static int sane(int state)
{
    return state >= TIME_OK && state <= TIME_ERROR;
}

int main(void)
{
    struct timex all = { 0 }, before = { .modes = 0 };
    memset(&all, 0x5a, sizeof all);
    all.modes = 0;
    CHECK_TRUE("adjtimex", sane(syscall(SYS_adjtimex, &all)));
    CHECK("modes", all.modes);
    CHECK_TRUE("tick", all.tick >= 9000 && all.tick <= 11000);
    CHECK("tolerance", all.tolerance);
    CHECK_TRUE("error-sign", all.maxerror >= 0 && all.esterror >= 0);
    CHECK_TRUE("time", llabs((long long)all.time.tv_sec - (long long)time(NULL)) <= 3600);
    CHECK_TRUE("microseconds", all.time.tv_usec >= 0 && all.time.tv_usec < 1000000000);
    CHECK_TRUE("clock-adjtime", sane(syscall(SYS_clock_adjtime, CLOCK_REALTIME, &before)));
    CHECK_TRUE("same-tick", before.tick == all.tick);
    CHECK("bad-pointer", syscall(SYS_adjtimex, BAD_POINTER));
    CHECK("clock-bad-pointer", syscall(SYS_clock_adjtime, CLOCK_REALTIME, BAD_POINTER));
    CHECK("null", syscall(SYS_adjtimex, NULL));
    static const struct { const char *name; clockid_t clock; } others[] = {
        { "monotonic", CLOCK_MONOTONIC }, { "raw", CLOCK_MONOTONIC_RAW }, { "coarse", CLOCK_REALTIME_COARSE },
        { "boot", CLOCK_BOOTTIME }, { "atomic", CLOCK_TAI }, { "process", CLOCK_PROCESS_CPUTIME_ID },
        { "thread", CLOCK_THREAD_CPUTIME_ID }, { "alarm", CLOCK_REALTIME_ALARM }, { "unused", 10 }, { "none", 99 }, { "negative", -1 }, { "descriptor", -5 },
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        memset(&before, 0, sizeof before);
        CHECK(others[i].name, syscall(SYS_clock_adjtime, others[i].clock, &before));
    }
    CHECK("none-bad-pointer", syscall(SYS_clock_adjtime, 99, BAD_POINTER));
    CHECK("monotonic-bad-pointer", syscall(SYS_clock_adjtime, CLOCK_MONOTONIC, BAD_POINTER));
    // Who may not set the time may look, also at what is left of an adjtime, which must be asked for alone.
    CHECK_CHILD("unprivileged", REQUIRE(setuid(1000) == 0); all = (struct timex){ 0 }; CHECK_TRUE("look", sane(syscall(SYS_adjtimex, &all)));
                all = (struct timex){ .modes = ADJ_OFFSET_SS_READ }; CHECK_TRUE("left", sane(syscall(SYS_adjtimex, &all)));
                all = (struct timex){ .modes = ADJ_OFFSET_SINGLESHOT }; CHECK("shot", syscall(SYS_adjtimex, &all));
                all = (struct timex){ .modes = ADJ_OFFSET }; CHECK("offset", syscall(SYS_adjtimex, &all));
                all = (struct timex){ .modes = ADJ_FREQUENCY }; CHECK("frequency", syscall(SYS_adjtimex, &all));
                all = (struct timex){ .modes = ADJ_SETOFFSET }; CHECK("set-offset", syscall(SYS_adjtimex, &all));
                all = (struct timex){ .modes = ADJ_TICK, .tick = 1 }; CHECK("tick", syscall(SYS_adjtimex, &all));
                all = (struct timex){ .modes = ADJ_STATUS }; CHECK("status", syscall(SYS_clock_adjtime, CLOCK_REALTIME, &all)));
    all = (struct timex){ .modes = ADJ_TICK, .tick = 1 };
    CHECK("bad-tick", syscall(SYS_adjtimex, &all));
    all = (struct timex){ .modes = 0x8000 };
    CHECK("single-shot-bit-without-offset", syscall(SYS_adjtimex, &all));
    return 0;
}
