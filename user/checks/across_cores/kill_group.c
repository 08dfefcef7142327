// A signal to a process group reaches all of it, those too that are made meanwhile: nobody forks out of its reach.
#include "../check.h"

#include <sys/mman.h>
#include <sys/prctl.h>

#define ROUNDS 25
#define CHAINS 4

int main(void)
{
    volatile int *hops = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(hops != MAP_FAILED);
    // Orphans come here and go at once.
    REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L) == 0);
    signal(SIGCHLD, SIG_IGN);
    int gone = 0;
    for (int i = 0; i < ROUNDS; i++) {
        int fds[2];
        char byte;
        REQUIRE(pipe(fds) == 0);
        *hops = 0;
        pid_t group = fork();
        REQUIRE(group >= 0);
        if (group == 0) {
            setpgid(0, 0);
            for (int chain = 1; chain < CHAINS; chain++)
                if (fork() == 0)
                    break;
            // Each makes the next and ends.
            for (;;) {
                __atomic_fetch_add(hops, 1, __ATOMIC_SEQ_CST);
                pid_t next = fork();
                if (next > 0)
                    _exit(0);
            }
        }
        close(fds[1]);
        while (*hops < 4 * CHAINS + i)
            ;
        kill(-group, SIGKILL);
        // The end comes when none of them is left.
        gone += read(fds[0], &byte, 1) == 0;
        close(fds[0]);
    }
    CHECK("groups-gone", gone);
    return 0;
}
