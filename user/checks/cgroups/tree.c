// Directories and files of control groups: what there is, what can be made and removed, and by whom.
#include "../cgroup.h"
#include <dirent.h>
#include <sys/statfs.h>

static const char *number(long value)
{
    static char texts[4][24];
    static int next;
    char *text = texts[next++ % 4];
    snprintf(text, sizeof texts[0], "%ld", value);
    return text;
}

static const char *mode_of(const char *path)
{
    static char text[16];
    struct stat status;
    if (stat(at(path), &status) != 0)
        return check_errno_name(errno);
    snprintf(text, sizeof text, "%o %ld", status.st_mode & 07777, (long)status.st_size);
    return text;
}

static int is_listed(const char *directory, const char *name)
{
    DIR *open = opendir(at(directory));
    REQUIRE(open != NULL);
    int found = 0;
    for (struct dirent *entry; (entry = readdir(open)) != NULL;)
        found += strcmp(entry->d_name, name) == 0;
    closedir(open);
    return found;
}

static const char *magic(void)
{
    static char text[24];
    struct statfs status;
    snprintf(text, sizeof text, "%#lx", statfs("cg", &status) == 0 ? (long)status.f_type : 0);
    return text;
}

static const char *links(const char *path)
{
    struct stat status;
    return stat(at(path), &status) == 0 ? number(status.st_nlink) : check_errno_name(errno);
}

// Whether another mount shows a group.
static const char *other_mount(const char *group)
{
    REQUIRE(mkdir("other", 0755) == 0);
    if (mount("none", "other", "cgroup2", 0, NULL) != 0)
        return check_errno_name(errno);
    char path[256];
    snprintf(path, sizeof path, "other/%s/%s", strchr(top, '/') + 1, group);
    const char *found = access(path, F_OK) == 0 ? "yes" : "no";
    umount("other");
    rmdir("other");
    return found;
}

static const char *read_in_parts(const char *path)
{
    static char text[256];
    int fd = open(at(path), O_RDONLY);
    size_t length = 0;
    while (length < sizeof text - 1 && read(fd, text + length, 1) == 1)
        length++;
    text[length] = 0;
    for (char *letter = text; *letter; letter++)
        if (*letter == '\n')
            *letter = '/';
    close(fd);
    return text;
}

static const char *read_from(const char *path, off_t offset)
{
    static char text[256];
    int fd = open(at(path), O_RDONLY);
    ssize_t length = pread(fd, text, sizeof text - 1, offset);
    close(fd);
    if (length < 0)
        return check_errno_name(errno);
    text[length] = 0;
    text[strcspn(text, "\n")] = 0;
    return text;
}

static const char *write_long(const char *path)
{
    static char text[5000];
    memset(text, ' ', sizeof text - 1);
    return put(path, text);
}

static const char *deep(void)
{
    static char path[128];
    strcpy(path, "depth");
    const char *made = "ok";
    for (int level = 0; level < 4 && strcmp(made, "ok") == 0; level++) {
        strcat(path, "/x");
        made = make(path);
    }
    return made;
}

int main(void)
{
    static const char *const files[] = {
        "cgroup.controllers", "cgroup.events", "cgroup.freeze", "cgroup.kill", "cgroup.max.depth", "cgroup.max.descendants",
        "cgroup.procs", "cgroup.stat", "cgroup.subtree_control", "cgroup.threads", "cgroup.type", "cpu.stat", "cpu.weight",
        "cpu.weight.nice", "pids.current", "pids.events", "pids.max",
    };
    static const char *const modes[] = {
        "444 0", "444 0", "644 0", "200 0", "644 0", "644 0", "644 0", "444 0", "644 0", "644 0", "644 0", "444 0", "644 0", "644 0",
        "444 0", "444 0", "644 0",
    };
    cgroup_begin();
    CHECK_TRUE("there is a place to mount them", access("/sys/fs/cgroup", F_OK) == 0);
    CHECK_TRUE("the type is known", strstr(check_read_file("/proc/filesystems"), "nodev\tcgroup2") != NULL);
    EXPECT("magic", "0x63677270", magic());
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        EXPECT(files[i], modes[i], mode_of(files[i]));
    EXPECT_NEW("pids.peak", "pids.peak", "444 0", mode_of("pids.peak"));
    EXPECT_NEW("pids.events.local", "pids.events.local", "444 0", mode_of("pids.events.local"));
    static const char *const not_in_root[] = { "cgroup.events", "cgroup.freeze", "cgroup.kill", "cgroup.type", "cpu.weight", "pids.max", "pids.current" };
    for (size_t i = 0; i < sizeof not_in_root / sizeof not_in_root[0]; i++) {
        char path[64];
        snprintf(path, sizeof path, "../%s", not_in_root[i]);
        EXPECT(path, "ENOENT", mode_of(path));
    }
    EXPECT("root procs", "644 0", mode_of("../cgroup.procs"));
    EXPECT("root cpu.stat", "444 0", mode_of("../cpu.stat"));

    EXPECT("make", "ok", make("a"));
    EXPECT("mode", "755 0", mode_of("a"));
    EXPECT("links", "3", links("."));
    EXPECT("links of an empty one", "2", links("a"));
    EXPECT("listed", "1", number(is_listed(".", "a")));
    EXPECT("file listed", "1", number(is_listed(".", "cgroup.procs")));
    EXPECT("other mount", "yes", other_mount("a"));
    EXPECT("make again", "EEXIST", make("a"));
    EXPECT("make a file's name", "EEXIST", make("cgroup.procs"));
    EXPECT("make a name with a newline", "EINVAL", make("a\nb"));
    EXPECT("no controllers given: no file", "ENOENT", mode_of("a/pids.max"));
    EXPECT("make that name", "ok", make("a/pids.max"));
    EXPECT("remove it", "ok", take("a/pids.max"));
    EXPECT("new file", "EACCES", outcome(open(at("file"), O_CREAT | O_WRONLY, 0644)));
    EXPECT("remove a file", "EPERM", outcome(unlink(at("a/cgroup.procs"))));
    EXPECT("remove a file as directory", "ENOTDIR", take("a/cgroup.procs"));
    EXPECT("symlink", "EPERM", outcome(symlink("x", at("link"))));
    EXPECT("fifo", "EPERM", outcome(mknod(at("fifo"), S_IFIFO | 0644, 0)));
    EXPECT("link", "EPERM", outcome(link(at("a/cgroup.procs"), at("a/x"))));
    EXPECT("rename", "EPERM", outcome(rename(at("a"), at("b"))));
    EXPECT("child", "ok", make("a/b"));
    EXPECT("remove one with a child", "EBUSY", take("a"));
    EXPECT("descendants", "2", number(field("cgroup.stat", "nr_descendants")));
    EXPECT("remove the child", "ok", take("a/b"));
    EXPECT("remove what is not there", "ENOENT", take("a/b"));
    EXPECT("descendants now", "1", number(field("cgroup.stat", "nr_descendants")));

    EXPECT("type", "domain", get("a/cgroup.type"));
    EXPECT("type as it is", "EINVAL", put("a/cgroup.type", "domain"));
    EXPECT("events", "populated 0 frozen 0", get("a/cgroup.events"));
    EXPECT("events in parts", "populated 0/frozen 0/", read_in_parts("a/cgroup.events"));
    EXPECT("events from the middle", "0", read_from("a/cgroup.events", 10));
    EXPECT("events from the end", "", read_from("a/cgroup.events", 100));
    EXPECT("write what cannot be", "EINVAL", put("a/cgroup.events", "1"));
    char byte;
    EXPECT("read what cannot be", "EINVAL", outcome(pread(open(at("a/cgroup.kill"), O_RDONLY), &byte, 1, 0)));
    EXPECT("write too much", "E2BIG", write_long("a/cgroup.max.depth"));
    EXPECT("max.depth", "max", get("a/cgroup.max.depth"));
    EXPECT("max.descendants", "max", get("a/cgroup.max.descendants"));

    // Limits.
    EXPECT("make for depth", "ok", make("depth"));
    EXPECT("set", "ok", put("depth/cgroup.max.depth", "2\n"));
    EXPECT("shown", "2", get("depth/cgroup.max.depth"));
    EXPECT("too deep", "EAGAIN", deep());
    EXPECT("set in hexadecimal", "ok", put("depth/cgroup.max.depth", " 0x10 "));
    EXPECT("shown in decimal", "16", get("depth/cgroup.max.depth"));
    EXPECT("negative", "ERANGE", put("depth/cgroup.max.depth", "-1"));
    EXPECT("no number", "EINVAL", put("depth/cgroup.max.depth", "many"));
    EXPECT("too large", "ERANGE", put("depth/cgroup.max.depth", "99999999999"));
    EXPECT("nothing", "EINVAL", put("depth/cgroup.max.depth", "\n"));
    EXPECT("no limit", "ok", put("depth/cgroup.max.depth", "max\n"));
    EXPECT("descendants limited", "ok", put("depth/cgroup.max.descendants", "2"));
    EXPECT("one too many", "EAGAIN", make("depth/y"));
    EXPECT("one less", "ok", take("depth/x/x"));
    EXPECT("one more", "ok", make("depth/y"));
    EXPECT("remove y", "ok", take("depth/y"));
    EXPECT("remove x", "ok", take("depth/x"));
    EXPECT("remove depth", "ok", take("depth"));

    // What is removed is still open.
    int file = -1, directory = -1;
    DO(file = open(at("a/cgroup.procs"), O_RDWR));
    DO(directory = open(at("a"), O_RDONLY | O_DIRECTORY));
    EXPECT("remove one that is open", "ok", take("a"));
    EXPECT("read it", "ENODEV", outcome(pread(file, &byte, 1, 0)));
    EXPECT("write it", "ENODEV", outcome(write(file, "0", 1)));
    EXPECT("make in it", "ENOENT", outcome(mkdirat(directory, "x", 0755)));
    EXPECT("open in it", "ENOENT", outcome(openat(directory, "cgroup.procs", O_RDONLY)));
    DO(close(file); close(directory));
    EXPECT_SOON("nothing is dying", field("cgroup.stat", "nr_dying_descendants") == 0);

    // Delegation.
    EXPECT("give pids", "ok", put("cgroup.subtree_control", "+pids"));
    EXPECT("mine", "ok", make("mine"));
    EXPECT("give it away", "ok", outcome(chown(at("mine"), 1000, 1000)));
    EXPECT("and its list", "ok", outcome(chown(at("mine/cgroup.procs"), 1000, 1000)));
    EXPECT("and its subtree", "ok", outcome(chown(at("mine/cgroup.subtree_control"), 1000, 1000)));
    EXPECT("other mode", "ok", outcome(chmod(at("mine/pids.max"), 0600)));
    EXPECT("mode kept", "600 0", mode_of("mine/pids.max"));
    pid_t child = -1;
    DO(child = check_fork());
    if (child <= 0 && (!usable || child == 0)) {
        if (usable) {
            char procs[16];
            snprintf(procs, sizeof procs, "%d", getpid());
            REQUIRE(strcmp(put("mine/cgroup.procs", procs), "ok") == 0);
            REQUIRE(setresgid(1000, 1000, 1000) == 0 && setresuid(1000, 1000, 1000) == 0);
        }
        EXPECT("user makes a group", "ok", make("mine/u"));
        EXPECT("and another", "ok", make("mine/v"));
        EXPECT("user moves itself", "ok", put("mine/u/cgroup.procs", "0"));
        EXPECT("and to the other", "ok", put("mine/v/cgroup.procs", "0"));
        EXPECT("not out", "EACCES", put("cgroup.procs", "0"));
        EXPECT("not the limit", "EACCES", put("mine/pids.max", "5"));
        EXPECT("user enables", "ok", put("mine/cgroup.subtree_control", "+pids"));
        EXPECT("no group beside", "EACCES", make("beside"));
        EXPECT("user removes one", "ok", take("mine/u"));
        if (usable)
            _exit(0);
    }
    DO(check_wait(child));
    EXPECT_SOON("nobody is left", field("mine/cgroup.events", "populated") == 0);
    EXPECT("remove v", "ok", take("mine/v"));
    EXPECT("remove mine", "ok", take("mine"));
    cgroup_end();
    return 0;
}
