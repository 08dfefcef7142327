// Time in user mode shows, also of a program that makes the same four calls again and again, wherever in that it begins.
#include "../check.h"
#include <sys/resource.h>

static int shows_user_time(int first_calls)
{
    struct rusage usage;
    while (first_calls-- > 0)
        getppid();
    do {
        char text[512];
        int fd = open("/proc/self/stat", O_RDONLY);
        REQUIRE(fd >= 0 && read(fd, text, sizeof text) > 0);
        close(fd);
        REQUIRE(getrusage(RUSAGE_SELF, &usage) == 0);
        if (usage.ru_utime.tv_sec > 0 || usage.ru_utime.tv_usec >= 10000)
            return 1;
    } while (usage.ru_stime.tv_sec < 3);
    return 0;
}

int main(void)
{
    for (int first_calls = 0; first_calls < 4; first_calls++)
        CHECK_CHILD("user time", CHECK_TRUE("is there", shows_user_time(first_calls)); fflush(stdout));
    return 0;
}
