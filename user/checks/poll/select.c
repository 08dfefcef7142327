// select and pselect.
#include "../check.h"
#include <sys/select.h>

int main(void)
{
    int fds[2];
    REQUIRE(pipe(fds) == 0);
    fd_set r, w, e;
    struct timeval zero = { 0, 0 }, brief = { 0, 30000 };
    FD_ZERO(&r);
    FD_ZERO(&w);
    FD_ZERO(&e);
    FD_SET(fds[0], &r);
    FD_SET(fds[1], &w);
    FD_SET(fds[0], &e);
    CHECK("empty", select(fds[1] + 1, &r, &w, &e, &zero));
    CHECK("bits", FD_ISSET(fds[0], &r) * 100 + FD_ISSET(fds[1], &w) * 10 + FD_ISSET(fds[0], &e));
    REQUIRE(write(fds[1], "x", 1) == 1);
    FD_SET(fds[0], &r);
    FD_SET(fds[1], &w);
    CHECK("both", select(fds[1] + 1, &r, &w, NULL, NULL));
    char c;
    REQUIRE(read(fds[0], &c, 1) == 1);
    FD_ZERO(&r);
    FD_SET(fds[0], &r);
    long before = check_now_ms();
    CHECK("timeout", select(fds[0] + 1, &r, NULL, NULL, &brief));
    CHECK_TRUE("waited", check_now_ms() - before >= 29);
    CHECK("cleared", FD_ISSET(fds[0], &r));
    CHECK("time-left", brief.tv_sec * 1000000 + brief.tv_usec);
    CHECK("sleep-only", select(0, NULL, NULL, NULL, &(struct timeval){ 0, 1000 }));
    FD_ZERO(&r);
    FD_SET(60, &r);
    CHECK("closed", select(61, &r, NULL, NULL, &zero));
    CHECK("negative", select(-1, NULL, NULL, NULL, &zero));
    CHECK("negative-time", syscall(SYS_select, 0, NULL, NULL, NULL, &(struct timeval){ -1, 0 }));
    close(fds[1]);
    FD_ZERO(&r);
    FD_SET(fds[0], &r);
    CHECK("end-is-readable", select(fds[0] + 1, &r, NULL, NULL, NULL));
    check_write_file("f", "");
    int file = open("f", O_RDWR);
    FD_ZERO(&r);
    FD_ZERO(&w);
    FD_SET(file, &r);
    FD_SET(file, &w);
    CHECK("regular", select(file + 1, &r, &w, NULL, NULL));
    struct timespec tick = { 0, 1000000 };
    sigset_t none;
    sigemptyset(&none);
    CHECK("pselect", pselect(0, NULL, NULL, NULL, &tick, &none));
    CHECK("pselect-time-kept", tick.tv_nsec);
    CHECK("pselect-bad-time", syscall(SYS_pselect6, 0, NULL, NULL, NULL, &(struct timespec){ 0, -1 }, NULL));
    return 0;
}
