// Signals that are read through a signalfd(2), into memory that must be made first, come as they were sent, and none is lost: not when others fill the queue at the same time.
#include "../check.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#define SENT 3000
#define QUEUED 8

static void *send_all(void *unused)
{
    for (int i = 1; i <= SENT; i++)
        while (sigqueue(getpid(), SIGRTMIN, (union sigval) { .sival_int = i }) != 0) {
            REQUIRE(errno == EAGAIN);
            sched_yield();
        }
    return unused;
}

int main(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    REQUIRE(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    int fd = signalfd(-1, &set, 0);
    REQUIRE(fd >= 0);
    // Nobody else's signals count for this user.
    REQUIRE(setuid(54321) == 0);
    struct rlimit limit = { QUEUED, QUEUED };
    REQUIRE(setrlimit(RLIMIT_SIGPENDING, &limit) == 0);
    size_t len = 2 * sizeof(struct signalfd_siginfo);
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(pages != MAP_FAILED);
    // The second one is in the second page.
    struct signalfd_siginfo *infos = (void *)(pages + 4096 - len / 2);

    int came = 0, in_order = 0, last = 0;
    pthread_t sender;
    REQUIRE(pthread_create(&sender, NULL, send_all, NULL) == 0);
    // The last one ends it; who has lost that is ended by the alarm.
    while (last != SENT) {
        REQUIRE(madvise(pages, 8192, MADV_DONTNEED) == 0);
        ssize_t got = read(fd, infos, len);
        REQUIRE(got > 0);
        for (int i = 0; i < (int)(got / (len / 2)); i++) {
            came++;
            in_order += infos[i].ssi_int == last + 1;
            last = infos[i].ssi_int;
        }
    }
    pthread_join(sender, NULL);
    CHECK("came", came);
    CHECK("in-order", in_order);
    return 0;
}
