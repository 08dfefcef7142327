// Descriptors that go by pidfd_getfd(2) from a group that is killed to a process outside, and into a group with a bound. Linux has no controller reclaim, so each fact is written down with what it must be.
#include "../cgroup.h"
#include <sys/eventfd.h>
#include <sys/socket.h>

#define EACH 20

static int take_fd(int process, int fd)
{
    return syscall(SYS_pidfd_getfd, process, fd, 0);
}

static void prepare(void)
{
    cgroup_give_all();
    REQUIRE(mkdir(at("a"), 0755) == 0);
}

static pid_t start_in_a(void)
{
    int fd = open(at("a"), O_RDONLY | O_DIRECTORY);
    pid_t child = clone_into(fd, INTO_CGROUP, 88);
    REQUIRE(child >= 0);
    close(fd);
    return child;
}

int main(void)
{
    cgroup_begin();
    usable = usable && is_ebb();
    DO(prepare());
    static char empty[64], above[64];
    snprintf(empty, sizeof empty, "%s", usable ? get("a/reclaim.current") : "");
    snprintf(above, sizeof above, "%s", usable ? get("reclaim.current") : "");

    int told[2];
    REQUIRE(pipe(told) == 0);
    int wrong = 0;
    for (int round = 0; usable && round < 20; round++) {
        pid_t child = start_in_a();
        int fds[3 * EACH];
        if (child == 0) {
            for (int i = 0; i < EACH; i++) {
                fds[3 * i] = eventfd(3, 0);
                REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, fds + 3 * i + 1) == 0);
            }
            REQUIRE(write(told[1], fds, sizeof fds) == sizeof fds);
            for (;;)
                pause();
        }
        int process = syscall(SYS_pidfd_open, child, 0);
        REQUIRE(read(told[0], fds, sizeof fds) == sizeof fds);
        int taken[3 * EACH];
        for (int i = 0; i < 3 * EACH; i++)
            if (i % 3 < 2)
                wrong += (taken[i] = take_fd(process, fds[i])) < 0;
        put("a/cgroup.kill", "1");
        // Some are closed while their group ends.
        for (int i = 0; i < EACH && round % 2; i++)
            close(taken[3 * i]);
        check_wait(child);
        for (int i = 0; i < EACH; i++) {
            uint64_t value;
            if (round % 2 == 0) {
                wrong += read(taken[3 * i], &value, sizeof value) != sizeof value || value != 3;
                close(taken[3 * i]);
            }
            // Its other end went with the group.
            wrong += read(taken[3 * i + 1], &value, sizeof value) != 0;
            close(taken[3 * i + 1]);
        }
        close(process);
        int tries = 0;
        while (strcmp(get("a/reclaim.current"), empty) != 0 && ++tries < 2000)
            check_sleep_ms(1);
        wrong += tries == 2000;
    }
    CHECK("taken-out-wrong", wrong);

    // Whoever takes is charged, and refused what is too much.
    int made = 0, error = 0;
    if (usable) {
        int own[200];
        for (int i = 0; i < 200; i++)
            REQUIRE((own[i] = eventfd(0, 0)) >= 0);
        pid_t self = getpid(), child = start_in_a();
        if (child == 0) {
            int process = syscall(SYS_pidfd_open, self, 0), result[2] = { 0, 0 };
            char number[32];
            for (int i = 0; i < 200; i++)
                close(own[i]);
            snprintf(number, sizeof number, "%ld", atol(get("a/reclaim.current")) + 20);
            put("a/reclaim.max", number);
            while (result[0] < 200 && take_fd(process, own[result[0]]) >= 0)
                result[0]++;
            result[1] = errno;
            REQUIRE(write(told[1], result, sizeof result) == sizeof result);
            _exit(0);
        }
        int result[2];
        REQUIRE(read(told[0], result, sizeof result) == sizeof result);
        check_wait(child);
        made = result[0], error = result[1];
        for (int i = 0; i < 200; i++)
            close(own[i]);
    }
    EXPECT("some are let in", "yes", made > 0 && made < 200 ? "yes" : "no");
    EXPECT("the error", "ENOMEM", check_errno_name(error));
    EXPECT_SOON("nothing is charged", strcmp(get("a/reclaim.current"), empty) == 0);
    EXPECT("denied once", "yes", field("a/reclaim.events", "denied") == 1 ? "yes" : "no");
    EXPECT_SOON("it can be removed", rmdir(at("a")) == 0);
    EXPECT_SOON("no group is charged", atol(get("reclaim.current")) < atol(above));
    cgroup_end();
    return 0;
}
