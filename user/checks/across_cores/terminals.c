// Two sessions open one terminal at the same moment: it becomes that of one of them.
#include "../check.h"
#include <sys/ioctl.h>
#include <sys/mman.h>

#define ROUNDS 200

int main(void)
{
    volatile struct { int ready[2], go, got[2], leave; } *shared =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    long wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), zero = 0, number;
        REQUIRE(master >= 0 && ioctl(master, TIOCSPTLCK, &zero) == 0 && ioctl(master, TIOCGPTN, &number) == 0);
        char name[32];
        snprintf(name, sizeof name, "/dev/pts/%d", number);
        memset((void *)shared, 0, sizeof *shared);
        pid_t children[2];
        for (int i = 0; i < 2; i++) {
            children[i] = fork();
            REQUIRE(children[i] >= 0);
            if (children[i] > 0)
                continue;
            REQUIRE(setsid() > 0 && signal(SIGHUP, SIG_IGN) != SIG_ERR);
            shared->ready[i] = 1;
            while (!shared->go)
                ;
            REQUIRE(open(name, O_RDWR) >= 0);
            shared->got[i] = open("/dev/tty", O_RDWR) >= 0 ? 1 : -1;
            while (!shared->leave)
                check_sleep_ms(1);
            _exit(0);
        }
        while (!shared->ready[0] || !shared->ready[1])
            check_sleep_ms(1);
        shared->go = 1;
        while (!shared->got[0] || !shared->got[1])
            check_sleep_ms(1);
        wrong += shared->got[0] + shared->got[1] != 0;
        shared->leave = 1;
        for (int i = 0; i < 2; i++)
            REQUIRE(waitpid(children[i], NULL, 0) == children[i]);
        close(master);
    }
    CHECK("of-both-or-none", wrong);
    return 0;
}
