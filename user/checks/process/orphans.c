// Orphans get a new parent; PR_SET_CHILD_SUBREAPER and PR_SET_PDEATHSIG.
#include "../check.h"
#include <sys/prctl.h>

int main(void)
{
    int fds[2];
    char c = 0;
    REQUIRE(pipe(fds) == 0);
    CHECK("subreaper", prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
    int on = 0;
    CHECK("subreaper-get", prctl(PR_GET_CHILD_SUBREAPER, &on, 0, 0, 0) == 0 ? on : -1);
    pid_t me = getpid();
    pid_t middle = check_fork();
    if (middle == 0) {
        if (check_fork() == 0) {
            pid_t before = getppid();
            while (getppid() == before && before != me)
                check_sleep_ms(1);
            c = getppid() == me ? 'y' : 'n';
            REQUIRE(write(fds[1], &c, 1) == 1);
            _exit(17);
        }
        _exit(0);
    }
    CHECK_STATUS("middle", check_wait(middle));
    REQUIRE(read(fds[0], &c, 1) == 1);
    CHECK_TRUE("adopted-by-subreaper", c == 'y');
    int status;
    REQUIRE(wait(&status) > 0);
    CHECK_STATUS("adopted", status);
    // The parent's end is announced by a signal.
    middle = check_fork();
    if (middle == 0) {
        pid_t parent = getpid();
        pid_t child = check_fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGUSR2, 0, 0, 0);
            if (getppid() != parent)
                raise(SIGUSR2);
            REQUIRE(write(fds[1], "r", 1) == 1);
            pause();
            _exit(0);
        }
        REQUIRE(read(fds[0], &c, 1) == 1);
        _exit(0);
    }
    CHECK_STATUS("parent", check_wait(middle));
    REQUIRE(wait(&status) > 0);
    CHECK_STATUS("told-by-signal", status);
    int signal_number = -1;
    CHECK("death-signal", prctl(PR_GET_PDEATHSIG, &signal_number, 0, 0, 0) == 0 ? signal_number : -1);
    CHECK("bad-death-signal", prctl(PR_SET_PDEATHSIG, 1000, 0, 0, 0));
    return 0;
}
