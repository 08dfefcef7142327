// The controller pids.
#include "../cgroup.h"
#include <pthread.h>

static const char *number(long value)
{
    static char texts[4][24];
    static int next;
    char *text = texts[next++ % 4];
    snprintf(text, sizeof texts[0], "%ld", value);
    return text;
}

static int gate[2];
static void *thread(void *unused)
{
    char byte;
    (void)!read(gate[0], &byte, 1);
    return unused;
}

// How many children can be made in the group, one after the other, each of which stays until all are made.
static const char *children(const char *group)
{
    static char text[64];
    int result[2];
    REQUIRE(pipe(result) == 0);
    if (check_fork() == 0) {
        char file[64];
        snprintf(file, sizeof file, "%s/cgroup.procs", group);
        REQUIRE(strcmp(put(file, "0"), "ok") == 0);
        int made = 0, error = 0;
        while (made < 50) {
            pid_t child = fork();
            if (child == 0)
                for (;;)
                    pause();
            if (child < 0) {
                error = errno;
                break;
            }
            made++;
        }
        char line[64];
        int length = snprintf(line, sizeof line, "%d %s", made, error ? check_errno_name(error) : "ok");
        (void)!write(result[1], line, length);
        for (;;)
            pause();
    }
    ssize_t length = read(result[0], text, sizeof text - 1);
    text[length < 0 ? 0 : length] = 0;
    close(result[0]);
    close(result[1]);
    return text;
}

int main(void)
{
    cgroup_begin();
    EXPECT("give", "ok", put("cgroup.subtree_control", "+pids"));
    EXPECT("a", "ok", make("a"));
    EXPECT("a gives", "ok", put("a/cgroup.subtree_control", "+pids"));
    EXPECT("b", "ok", make("a/b"));
    EXPECT("none", "0", get("a/pids.current"));
    EXPECT("no limit", "max", get("a/pids.max"));
    EXPECT("events", "max 0", get("a/pids.events"));
    EXPECT("limit", "ok", put("a/pids.max", "3\n"));
    EXPECT("limit shown", "3", get("a/pids.max"));
    EXPECT("zero", "ok", put("a/b/pids.max", "0"));
    EXPECT("negative", "EINVAL", put("a/pids.max", "-1"));
    EXPECT("most", "ok", put("a/b/pids.max", "4194304"));
    EXPECT("too large", "EINVAL", put("a/pids.max", "4194305"));
    EXPECT("no number", "EINVAL", put("a/pids.max", "few"));
    EXPECT("inner is max", "ok", put("a/b/pids.max", "max"));

    // The limit above counts.
    EXPECT("two beside the maker", "2 EAGAIN", children("a/b"));
    EXPECT("three in b", "3", get("a/b/pids.current"));
    EXPECT("three in a", "3", get("a/pids.current"));
    EXPECT_NEW("a/b/pids.events.local", "told where the limit is", "max 1", get("a/pids.events"));
    EXPECT_NEW("a/b/pids.events.local", "not told below", "max 0", get("a/b/pids.events"));
    EXPECT_NEW("a/b/pids.events.local", "told locally", "max 1", get("a/pids.events.local"));
    // The one that was refused above had been counted here.
    EXPECT_NEW("a/b/pids.peak", "peak", "4", get("a/b/pids.peak"));
    DO(kill_all("a/b"));
    EXPECT_SOON("all are free again", strcmp(get("a/pids.current"), "0") == 0);
    EXPECT_NEW("a/b/pids.peak", "peak stays", "4", get("a/b/pids.peak"));

    // A limit below what is there refuses more and takes nobody away; moving in is not refused.
    pid_t first = -1;
    EXPECT("lower", "ok", put("a/pids.max", "1"));
    DO(sleeper("a/b"); sleeper("a/b"));
    EXPECT("above the limit", "2", get("a/pids.current"));
    EXPECT("no more", "0 EAGAIN", children("a/b"));
    DO(kill_all("a/b"));
    EXPECT_SOON("free", strcmp(get("a/pids.current"), "0") == 0);

    // Threads count, and zombies.
    EXPECT("raise", "ok", put("a/pids.max", "4"));
    DO(first = check_fork());
    if (first == 0) {
        REQUIRE(strcmp(put("a/b/cgroup.procs", "0"), "ok") == 0);
        REQUIRE(pipe(gate) == 0);
        pthread_t threads[3], other;
        for (int i = 0; i < 3; i++)
            REQUIRE(pthread_create(&threads[i], NULL, thread, NULL) == 0);
        EXPECT("four threads", "4", get("a/pids.current"));
        EXPECT("a fifth", "EAGAIN", check_errno_name(pthread_create(&other, NULL, thread, NULL)));
        (void)!write(gate[1], "123", 3);
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        EXPECT_SOON("one thread", strcmp(get("a/pids.current"), "1") == 0);
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        siginfo_t info;
        REQUIRE(waitid(P_PID, child, &info, WEXITED | WNOWAIT) == 0);
        EXPECT("a zombie counts", "2", get("a/pids.current"));
        check_wait(child);
        EXPECT_SOON("until it was waited for", strcmp(get("a/pids.current"), "1") == 0);
        _exit(0);
    }
    if (!usable)
        check_line("four threads: 4\na fifth: EAGAIN\none thread: yes\na zombie counts: 2\nuntil it was waited for: yes\n");
    DO(check_wait(first));
    EXPECT_SOON("nobody", strcmp(get("a/pids.current"), "0") == 0);

    // A clone into a group counts there.
    int fd = -1;
    DO(fd = open(at("a/b"), O_RDONLY | O_DIRECTORY));
    EXPECT("none may be", "ok", put("a/pids.max", "0"));
    EXPECT("clone into a full one", "EAGAIN", outcome(clone_into(fd, INTO_CGROUP, 88)));
    DO(close(fd));
    EXPECT("still none", "0", number(strtol(get("a/pids.current"), NULL, 10)));
    EXPECT("remove b", "ok", take("a/b"));
    EXPECT("remove a", "ok", take("a"));
    cgroup_end();
    return 0;
}
