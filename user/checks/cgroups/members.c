// Who is in which group: fork, exit, cgroup.procs, cgroup.threads, /proc/PID/cgroup, zombies.
#include "../cgroup.h"
#include <pthread.h>

static int words(const char *text)
{
    int count = 0;
    for (const char *letter = text; *letter; letter++)
        count += *letter != ' ' && (letter == text || letter[-1] == ' ');
    return count;
}

static const char *number(long value)
{
    static char texts[4][24];
    static int next;
    char *text = texts[next++ % 4];
    snprintf(text, sizeof texts[0], "%ld", value);
    return text;
}

static int contains(const char *path, pid_t pid)
{
    char text[4200], pattern[24];
    snprintf(text, sizeof text, " %s ", get(path));
    snprintf(pattern, sizeof pattern, " %d ", pid);
    return strstr(text, pattern) != NULL;
}

static const char *yes(int condition)
{
    return condition ? "yes" : "no";
}

// The line of version 2 behind the name of the check's own group.
static const char *group_of(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
    static char line[256];
    snprintf(line, sizeof line, "%s", check_read_file(path));
    char *found = strstr(line, "0::/");
    if (!found)
        return line;
    char *own = strstr(found, strchr(top, '/'));
    return own ? own + strlen(strchr(top, '/')) : found;
}

static int gate[2];
static void *thread(void *unused)
{
    char byte;
    (void)!read(gate[0], &byte, 1);
    return unused;
}

int main(int count, char **arguments)
{
    // What is executed after a move finds nothing changed.
    if (count == 2 && strcmp(arguments[1], "again") == 0)
        _exit(strstr(check_read_file("/proc/self/cgroup"), "/b") ? 0 : 1);
    cgroup_begin();
    EXPECT("a", "ok", make("a"));
    EXPECT("b", "ok", make("b"));
    CHECK_TRUE("the name of a group is told", strstr(check_read_file("/proc/self/cgroup"), "0::/") != NULL);
    pid_t child = -1;
    DO(child = sleeper("a"));
    EXPECT("listed", "yes", yes(contains("a/cgroup.procs", child)));
    EXPECT("as a thread", "yes", yes(contains("a/cgroup.threads", child)));
    EXPECT("not in the other", "", get("b/cgroup.procs"));
    EXPECT("not above", "", get("cgroup.procs"));
    EXPECT("populated", "populated 1 frozen 0", get("a/cgroup.events"));
    EXPECT("populated above", "populated 1 frozen 0", get("cgroup.events"));
    EXPECT("its name", "/a", group_of(child));
    EXPECT("remove", "EBUSY", take("a"));
    EXPECT("move", "ok", put_pid("b/cgroup.procs", child));
    EXPECT("its name now", "/b", group_of(child));
    EXPECT("nobody is left", "populated 0 frozen 0", get("a/cgroup.events"));
    EXPECT("move where it is", "ok", put_pid("b/cgroup.procs", child));
    EXPECT("remove the empty one", "ok", take("a"));
    EXPECT("make it again", "ok", make("a"));
    EXPECT("nobody", "ESRCH", put("a/cgroup.procs", "4194000"));
    EXPECT("negative", "EINVAL", put("a/cgroup.procs", "-1"));
    EXPECT("no number", "EINVAL", put("a/cgroup.procs", "x"));
    EXPECT("two", "EINVAL", put("a/cgroup.procs", "1 2"));
    EXPECT("too large", "EINVAL", put("a/cgroup.procs", "99999999999"));

    // A zombie keeps its group's name, and populates nothing.
    DO(kill(child, SIGKILL));
    DO(siginfo_t info; REQUIRE(waitid(P_PID, child, &info, WEXITED | WNOWAIT) == 0));
    EXPECT_SOON("a zombie populates nothing", field("b/cgroup.events", "populated") == 0);
    EXPECT("not listed", "", get("b/cgroup.procs"));
    EXPECT("a zombie's group", "/b", group_of(child));
    EXPECT("move a zombie", "ok", put_pid("a/cgroup.procs", child));
    EXPECT("it stays", "/b", group_of(child));
    EXPECT("remove its group", "ok", take("b"));
    EXPECT("its group is gone", "/b (deleted)", group_of(child));
    EXPECT("it is dying", "yes", yes(field("cgroup.stat", "nr_dying_descendants") >= 1));
    DO(check_wait(child));
    EXPECT_SOON("it is dead", field("cgroup.stat", "nr_dying_descendants") == 0);

    // Children are where their parents are; threads are where their processes are.
    DO(child = check_fork());
    if (child == 0) {
        REQUIRE(strcmp(put("a/cgroup.procs", "0"), "ok") == 0);
        EXPECT("oneself", "/a", group_of(getpid()));
        pid_t grandchild = check_fork();
        if (grandchild == 0) {
            EXPECT("a child", "/a", group_of(getpid()));
            _exit(0);
        }
        check_wait(grandchild);
        REQUIRE(pipe(gate) == 0);
        pthread_t threads[3];
        for (int i = 0; i < 3; i++)
            REQUIRE(pthread_create(&threads[i], NULL, thread, NULL) == 0);
        EXPECT("one process", "1", number(words(get("a/cgroup.procs"))));
        EXPECT("four threads", "4", number(words(get("a/cgroup.threads"))));
        EXPECT("b again", "ok", make("b"));
        char other[16] = "";
        snprintf(other, sizeof other, "%s", get("a/cgroup.threads"));
        EXPECT("move all", "ok", put("b/cgroup.procs", "0"));
        EXPECT("all have moved", "4", number(words(get("b/cgroup.threads"))));
        EXPECT("none is left", "", get("a/cgroup.threads"));
        EXPECT("a thread alone", "EOPNOTSUPP", put("a/cgroup.threads", "0"));
        EXPECT("where it is", "ok", put("b/cgroup.threads", "0"));
        (void)!write(gate[1], "123", 3);
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        EXPECT_SOON("one thread is left", words(get("b/cgroup.threads")) == 1);
        execl("/proc/self/exe", "members", "again", NULL);
        _exit(3);
    }
    if (!usable) {
        check_line("oneself: /a\na child: /a\none process: 1\nfour threads: 4\nb again: ok\nmove all: ok\nall have moved: 4\n"
                   "none is left: \na thread alone: EOPNOTSUPP\nwhere it is: ok\none thread is left: yes\n");
    }
    int status = 0;
    DO(status = check_wait(child));
    CHECK_STATUS("the child", status);
    EXPECT_SOON("empty", field("cgroup.events", "populated") == 0);

    // A list of many, in one piece.
    pid_t many[300];
    for (int i = 0; usable && i < 300; i++)
        many[i] = sleeper("a");
    EXPECT("many", "300", number(words(get("a/cgroup.procs"))));
    for (int i = 0; usable && i < 300; i++)
        end(many[i]);
    EXPECT_SOON("none of many", field("a/cgroup.events", "populated") == 0);
    EXPECT("remove a", "ok", take("a"));
    EXPECT("remove b", "ok", take("b"));
    cgroup_end();
    return 0;
}
