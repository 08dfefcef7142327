// A system call that takes seconds holds nobody up: processes on other cores end meanwhile, and their parents learn of it.
#include "../check.h"
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/wait.h>

enum { ROUNDS = 200, LENGTH = 0x7ffff000, SENDERS = 64 };

int main(void)
{
    // How many calls were over.
    volatile int *calls = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(calls != MAP_FAILED);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    long count = cores < 2 ? 1 : cores - 1 < SENDERS ? cores - 1 : SENDERS;
    pid_t senders[SENDERS];
    for (long i = 0; i < count; i++) {
        senders[i] = fork();
        REQUIRE(senders[i] >= 0);
        if (senders[i] == 0) {
            int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY);
            for (;;) {
                if (sendfile(null, zero, NULL, LENGTH) <= 0)
                    pause();
                if (i == 0)
                    ++*calls;
            }
        }
    }
    long ended = 0;
    for (int round = 0; round < ROUNDS; round++) {
        pid_t pid = fork();
        if (pid == 0) {
            // Something that has to come to its end with the process.
            int ends[2];
            _exit(pipe(ends) == 0 ? 7 : 1);
        }
        int status;
        ended += pid > 0 && waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7;
    }
    CHECK("children-ended", ended);
    // A child takes less than a millisecond, and a call some hundreds of them.
    CHECK("children-waited-for-calls", *calls > ROUNDS / 2);
    long killed = 0;
    for (long i = 0; i < count; i++) {
        int status;
        kill(senders[i], SIGKILL);
        killed += waitpid(senders[i], &status, 0) == senders[i] && WIFSIGNALED(status);
    }
    CHECK("senders-left", count - killed);
    return 0;
}
