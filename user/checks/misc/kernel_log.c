// syslog(2): what it refuses. What it tells, and what it does to the console, would change the machine that this runs on.
#include "../check.h"

static long kernel_log(int action, char *buffer, int len)
{
    return syscall(SYS_syslog, action, buffer, len);
}

int main(void)
{
    char buffer[16];
    CHECK("no-action", kernel_log(100, buffer, 0));
    CHECK("negative-action", kernel_log(-1, buffer, 0));
    CHECK("close", kernel_log(0, NULL, 0));
    CHECK("open", kernel_log(1, NULL, 0));
    CHECK("read-nowhere", kernel_log(2, NULL, 16));
    CHECK("read-negative", kernel_log(2, buffer, -1));
    CHECK("read-nothing", kernel_log(2, buffer, 0));
    CHECK("read-all-nowhere", kernel_log(3, NULL, 16));
    CHECK("read-all-negative", kernel_log(3, buffer, -1));
    CHECK("read-all-nothing", kernel_log(3, buffer, 0));
    CHECK("level-negative", kernel_log(8, buffer, -1));
    CHECK("level-0", kernel_log(8, buffer, 0));
    CHECK("level-9", kernel_log(8, buffer, 9));
    CHECK_TRUE("size", kernel_log(10, NULL, 0) >= 4096);
    CHECK_CHILD("user", REQUIRE(setuid(1234) == 0); for (int action = 0; action < 10; action++) if (action != 3) CHECK("refused", kernel_log(action, buffer, 1)));
    return 0;
}
