// The groups of a round.
#include "kills.h"

static const char *path_of(const char *group, const char *file)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/%s", group, file);
    return path;
}

const char *group_text(const char *group, const char *file)
{
    static char text[4096];
    int fd = open(path_of(group, file), O_RDONLY | O_CLOEXEC);
    long length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[length < 0 ? 0 : length] = 0;
    if (fd >= 0)
        close(fd);
    return text;
}

long group_number(const char *group, const char *file, const char *key)
{
    const char *found = group_text(group, file);
    if (*found == 0)
        return -1;
    size_t length = strlen(key);
    if (length == 0)
        return atol(found);
    for (; found; found = strchr(found, '\n') ? strchr(found, '\n') + 1 : NULL)
        if (strncmp(found, key, length) == 0 && found[length] == ' ')
            return atol(found + length);
    return -1;
}

int write_group(const char *group, const char *file, const char *text)
{
    int fd = open(path_of(group, file), O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    long length = write(fd, text, strlen(text));
    close(fd);
    return length < 0 ? -1 : 0;
}

static void make_group(const char *group)
{
    must(mkdir(group, 0755), group);
}

static void give_controllers(const char *group)
{
    // Some levels have no budget of their own.
    const char *all = once_in(6) ? "+cpu +pids +memory" : "+cpu +pids +memory +reclaim";
    if (write_group(group, "cgroup.subtree_control", all) < 0)
        write_group(group, "cgroup.subtree_control", "+cpu +pids +memory");
}

static void bound_some(const char *group)
{
    if (!once_in(6))
        return;
    char text[24];
    snprintf(text, sizeof text, "%u", 30 + any(once_in(3) ? 300 : 8000));
    write_group(group, "reclaim.max", text);
}

void make_tree(struct tree *tree, long round)
{
    tree->depth = once_in(2) ? 1 : 1 + any(DEEPEST_GROUP);
    tree->leaves = once_in(2) ? 1 : 1 + any(MOST_LEAVES);
    snprintf(tree->chain[0], sizeof tree->chain[0], TOP "/%ld", round);
    make_group(tree->chain[0]);
    for (int i = 1; i < tree->depth; i++) {
        give_controllers(tree->chain[i - 1]);
        snprintf(tree->chain[i], sizeof tree->chain[i], "%.50s/in", tree->chain[i - 1]);
        make_group(tree->chain[i]);
    }
    const char *last = tree->chain[tree->depth - 1];
    snprintf(tree->leaf[0], sizeof tree->leaf[0], "%s", last);
    if (tree->leaves > 1) {
        give_controllers(last);
        for (int i = 0; i < tree->leaves; i++) {
            snprintf(tree->leaf[i], sizeof tree->leaf[i], "%s/%d", last, i);
            make_group(tree->leaf[i]);
        }
    }
    for (int i = 0; i < tree->depth; i++)
        bound_some(tree->chain[i]);
    for (int i = 0; i < tree->leaves && tree->leaves > 1; i++)
        bound_some(tree->leaf[i]);
}

static void remove_group(const char *group)
{
    if (rmdir(group) == 0)
        return;
    int error = errno;
    for (int i = 0; i < 1000; i++) {
        sleep_micros(1000);
        if (rmdir(group) == 0) {
            late("rmdir of %s: %s at first, but done after %d ms", group, strerror(error), i + 1);
            return;
        }
    }
    violation("rmdir of %s: %s", group, strerror(errno));
}

void remove_tree(const struct tree *tree)
{
    for (int i = 0; i < tree->leaves && tree->leaves > 1; i++)
        remove_group(tree->leaf[i]);
    for (int i = tree->depth - 1; i >= 0; i--)
        remove_group(tree->chain[i]);
}

// From linux/sched.h, since 5.7: CLONE_INTO_CGROUP and what clone3(2) takes.
#define INTO_CGROUP 0x200000000ULL

pid_t fork_into(const char *group)
{
    struct {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup;
    } arguments = { .flags = INTO_CGROUP, .exit_signal = SIGCHLD };
    int directory = open(group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(directory, group);
    arguments.cgroup = directory;
    long pid = syscall(SYS_clone3, &arguments, sizeof arguments);
    close(directory);
    return pid;
}

void await_empty(const char *group)
{
    int events = open(path_of(group, "cgroup.events"), O_RDONLY | O_CLOEXEC);
    must(events, "cgroup.events");
    struct pollfd asked = { events, POLLPRI, 0 };
    char text[256];
    for (;;) {
        long length = pread(events, text, sizeof text - 1, 0);
        must(length, "read of cgroup.events");
        text[length] = 0;
        if (!strstr(text, "populated 1"))
            break;
        // The limit is there to end what hangs.
        if (poll(&asked, 1, 300000) == 0) {
            violation("%s is populated five minutes after the kill", group);
            fail("no end of a kill");
        }
    }
    close(events);
}
