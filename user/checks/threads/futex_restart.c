// A handler ends a wait for a futex that has a time-out, whatever SA_RESTART says; one without goes on.
#include "../state.h"

static int word;

static void on_signal(int number) { (void)number; }

static void wait_with(const char *name, int operation, int is_absolute, long seconds)
{
    pid_t child = check_fork();
    if (child == 0) {
        struct timespec until = { seconds, 0 };
        if (is_absolute) {
            clock_gettime(CLOCK_MONOTONIC, &until);
            until.tv_sec += seconds;
        }
        long result = syscall(SYS_futex, &word, operation, 0, seconds ? &until : NULL, NULL, ~0u);
        _exit(result == 0 ? 0 : errno);
    }
    check_waits(child);
    kill(child, SIGUSR1);
    check_sleep_ms(30);
    int status;
    if (waitpid(child, &status, WNOHANG) == 0) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        CHECK_STR(name, "goes on");
    } else {
        check_line("%s: %s\n", name, check_errno_name(WEXITSTATUS(status)));
    }
}

int main(void)
{
    for (int restarts = 0; restarts < 2; restarts++) {
        struct sigaction action = { .sa_handler = on_signal, .sa_flags = restarts ? SA_RESTART : 0 };
        sigaction(SIGUSR1, &action, NULL);
        CHECK_STR("handlers", restarts ? "that restart calls" : "that do not");
        wait_with("time-out", 0, 0, 100);
        wait_with("time-out of a set of bits", 9, 1, 100);
        if (restarts)
            wait_with("none", 0, 0, 0);
        if (restarts)
            wait_with("none of a set of bits", 9, 1, 0);
    }
    return 0;
}
