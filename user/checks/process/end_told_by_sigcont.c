// The end of a child can be told by SIGCONT (clone(2)): a parent that is stopped goes on then, and its own parent is told of that.
#include "../check.h"

#include <sys/syscall.h>

int main(void)
{
    int status, gate[2], last[2];
    char byte = 0;
    REQUIRE(pipe(gate) == 0 && pipe(last) == 0);
    pid_t parent = check_fork();
    if (parent == 0) {
        pid_t child = syscall(SYS_clone, SIGCONT, NULL, NULL, NULL, 0);
        if (child == 0) {
            close(gate[1]);
            // Until the grandparent has seen that the parent is stopped.
            if (read(gate[0], &byte, 1) != 1)
                syscall(SYS_exit, 2);
            syscall(SYS_exit, 0);
        }
        raise(SIGSTOP);
        // Stays until the grandparent has seen that it goes on.
        if (read(last[0], &byte, 1) != 1)
            _exit(2);
        _exit(waitpid(child, &status, __WALL) == child && status == 0 ? 7 : 1);
    }
    REQUIRE(waitpid(parent, &status, WUNTRACED) == parent);
    CHECK("stopped", WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    REQUIRE(write(gate[1], &byte, 1) == 1);
    siginfo_t info = { 0 };
    CHECK("continued", waitid(P_PID, parent, &info, WCONTINUED) == 0 && info.si_code == CLD_CONTINUED);
    REQUIRE(write(last[1], &byte, 1) == 1);
    CHECK_STATUS("ends", check_wait(parent));
    return 0;
}
