// A process that is stopped and told to go on at once goes on, wherever its signals are just then; and a handler of SIGCONT has run before anything else does.
#include "../check.h"

#define ROUNDS 300

static volatile sig_atomic_t continued;

static void note(int number)
{
    (void)number;
    continued++;
}

int main(void)
{
    int to[2], from[2], answers = 0, handled = 0, status;
    char byte = 0;
    REQUIRE(pipe(to) == 0 && pipe(from) == 0);
    pid_t pid = check_fork();
    if (pid == 0) {
        close(to[1]);
        for (ssize_t got; (got = read(to[0], &byte, 1)) != 0;)
            if (got == 1 && write(from[1], &byte, 1) != 1)
                _exit(1);
        _exit(0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        kill(pid, SIGSTOP);
        for (volatile int wait = i % 50 * 20; wait > 0; wait--)
            ;
        kill(pid, SIGCONT);
        // Stays out where the process has stopped for ever.
        REQUIRE(write(to[1], &byte, 1) == 1);
        answers += read(from[0], &byte, 1) == 1;
    }
    CHECK("goes-on", answers);
    close(to[1]);
    CHECK_STATUS("ends", check_wait(pid));

    for (int i = 0; i < ROUNDS / 3; i++) {
        pid = check_fork();
        if (pid == 0) {
            signal(SIGCONT, note);
            raise(SIGSTOP);
            _exit(continued);
        }
        REQUIRE(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
        kill(pid, SIGCONT);
        handled += WEXITSTATUS(check_wait(pid));
    }
    CHECK("handler-runs-first", handled);
    return 0;
}
