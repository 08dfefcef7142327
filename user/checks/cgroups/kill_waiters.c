// Very many processes outside of a group wait for ends of what its members have. When it is killed all of them are woken, however they wait, and others end meanwhile.
#include "../cgroup.h"
#include <sys/epoll.h>
#include <sys/socket.h>

enum { WAITERS = 500, LINKS = 6 };

static int outside[LINKS], inside[LINKS];

static void add(int set, int file)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP };
    REQUIRE(epoll_ctl(set, EPOLL_CTL_ADD, file, &event) == 0);
}

// Waits until what it watches has ended.
static void wait_for_ends(int number, int time_out)
{
    struct pollfd all[LINKS];
    struct epoll_event event;
    int set = epoll_create1(0);
    char byte;
    for (int i = 0; i < LINKS; i++) {
        all[i] = (struct pollfd){ outside[(number + i) % LINKS], POLLIN, 0 };
        if (number % 5 != 0)
            add(set, all[i].fd);
    }
    switch (number % 5) {
    case 0:
        REQUIRE(poll(all, LINKS, time_out) >= 1 || time_out > 0);
        break;
    case 1:
        REQUIRE(epoll_wait(set, &event, 1, time_out) == 1 || time_out > 0);
        break;
    case 2: {
        // Sets in sets: deep ones are few, as Linux has no more than 50 paths of four sets to a file.
        int outer = set, inner_sets = number % 25 == 2 ? 3 : 1;
        for (int depth = 0; depth < inner_sets; depth++) {
            int next = epoll_create1(0);
            add(next, outer);
            outer = next;
        }
        REQUIRE(epoll_wait(outer, &event, 1, time_out) == 1 || time_out > 0);
        break;
    }
    case 3: {
        struct pollfd one = { set, POLLIN, 0 };
        REQUIRE(poll(&one, 1, time_out) == 1 || time_out > 0);
        break;
    }
    default:
        REQUIRE(read(outside[number % LINKS], &byte, 1) == 0);
    }
}

static void round_of(int count)
{
    static pid_t waiters[WAITERS];
    int tells[2], status = 0;
    REQUIRE(pipe(tells) == 0);
    for (int i = 0; i < LINKS; i++) {
        int ends[2];
        REQUIRE((i % 2 ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends)) == 0);
        outside[i] = ends[0];
        inside[i] = ends[1];
    }
    pid_t member = check_fork();
    if (member == 0) {
        for (int i = 0; i < LINKS; i++)
            close(outside[i]);
        for (;;)
            pause();
    }
    for (int i = 0; i < LINKS; i++)
        close(inside[i]);
    if (usable)
        REQUIRE(strcmp(put_pid("a/cgroup.procs", member), "ok") == 0);
    for (int i = 0; i < count; i++)
        if ((waiters[i] = check_fork()) == 0) {
            // One in eleven waits for a short time first, so that its wakers stay behind.
            if (i % 11 == 0 && i % 5 != 4)
                wait_for_ends(i, 1);
            REQUIRE(write(tells[1], "", 1) == 1);
            wait_for_ends(i, -1);
            _exit(0);
        }
    for (int i = 0; i < count; i++) {
        char byte;
        REQUIRE(read(tells[0], &byte, 1) == 1);
    }
    check_sleep_ms(50);
    // Some end at the same time.
    for (int i = 0; i < count; i += 7)
        kill(waiters[i], SIGKILL);
    if (usable)
        REQUIRE(strcmp(put("a/cgroup.kill", "1"), "ok") == 0);
    else
        kill(member, SIGKILL);
    int woken = 0, killed = 0;
    for (int i = 0; i < count; i++) {
        status = check_wait(waiters[i]);
        woken += WIFEXITED(status) && WEXITSTATUS(status) == 0;
        killed += i % 7 == 0 && WIFSIGNALED(status);
    }
    CHECK_TRUE("all were woken or killed", woken + killed == count);
    CHECK_STATUS("the member", check_wait(member));
    close(tells[0]);
    close(tells[1]);
    for (int i = 0; i < LINKS; i++)
        close(outside[i]);
}

int main(void)
{
    // Whoever is not woken does not keep this for ever.
    alarm(60);
    cgroup_begin();
    EXPECT("a", "ok", make("a"));
    round_of(1);
    round_of(3);
    round_of(WAITERS);
    EXPECT_SOON("empty", field("cgroup.events", "populated") == 0);
    EXPECT("take a", "ok", take("a"));
    cgroup_end();
    return 0;
}
