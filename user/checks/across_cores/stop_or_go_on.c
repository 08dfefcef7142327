// A signal that stops and one that continues, sent to a process at once: one of them is the last, and nothing is left of the other. So a process is stopped
// and no SIGCONT is pending, or it is not stopped and one is, which it blocks here. That is the same where one of the two is for a single thread.
#include "together.h"

#include <fcntl.h>
#include <sys/syscall.h>

static pid_t child;
static int to_thread, decided, beside_each_other;

// Whether the child is stopped, and what is pending for it and its only thread.
static int look(unsigned long long *pending)
{
    char name[64], text[4096];
    snprintf(name, sizeof name, "/proc/%d/status", child);
    int fd = open(name, O_RDONLY);
    REQUIRE(fd >= 0);
    ssize_t len = read(fd, text, sizeof text - 1);
    close(fd);
    REQUIRE(len > 0);
    text[len] = 0;
    unsigned long long own = 0, shared = 0;
    char state = 0;
    REQUIRE(sscanf(strstr(text, "State:"), "State: %c", &state) == 1);
    REQUIRE(sscanf(strstr(text, "SigPnd:"), "SigPnd: %llx", &own) == 1);
    REQUIRE(sscanf(strstr(text, "ShdPnd:"), "ShdPnd: %llx", &shared) == 1);
    *pending = own | shared;
    return state == 'T';
}

static int has(unsigned long long set, int number)
{
    return set >> (number - 1) & 1;
}

static void stop(void)
{
    unsigned long long pending;
    kill(child, SIGSTOP);
    while (!look(&pending) || has(pending, SIGCONT))
        sched_yield();
}

static void send_stop(void)
{
    kill(child, SIGSTOP);
}

static void send_continue(void)
{
    if (to_thread)
        syscall(SYS_tgkill, child, child, SIGCONT);
    else
        kill(child, SIGCONT);
}

static void see(void)
{
    for (;;) {
        unsigned long long pending;
        int is_stopped = look(&pending);
        if (!has(pending, SIGCONT)) {
            if (is_stopped)
                break;
        } else if (is_stopped || has(pending, SIGSTOP)) {
            beside_each_other++;
            break;
        } else {
            break;
        }
        sched_yield();
    }
    decided++;
}

int main(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCONT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    child = check_fork();
    if (child == 0)
        for (;;)
            pause();
    for (to_thread = 0; to_thread < 2; to_thread++) {
        decided = beside_each_other = 0;
        together(400, stop, send_stop, send_continue, see);
        CHECK(to_thread ? "decided-by-thread" : "decided", decided);
        CHECK(to_thread ? "beside-each-other-by-thread" : "beside-each-other", beside_each_other);
    }
    kill(child, SIGKILL);
    CHECK_STATUS("ends", check_wait(child));
    return 0;
}
