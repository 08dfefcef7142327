// /proc/self: what the C libraries, ps and shells rely on.
#include "../check.h"
#include <dirent.h>
#include <sys/mman.h>
#include <sys/prctl.h>

// The text after `key` in a file of `key: value` lines.
static const char *value_of(const char *path, const char *key)
{
    static char line[512];
    FILE *file = fopen(path, "r");
    if (!file)
        return check_errno_name(errno);
    size_t length = strlen(key);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, key, length) == 0 && line[length] == ':') {
            fclose(file);
            line[strcspn(line, "\n")] = 0;
            return line + length + 1 + strspn(line + length + 1, " \t");
        }
    fclose(file);
    return "missing";
}

int main(int argc, char **argv)
{
    char text[4096], other[4096];
    (void)argc;
    struct stat st;
    ssize_t length = readlink("/proc/self", text, sizeof text);
    text[length > 0 ? length : 0] = 0;
    CHECK_TRUE("self", atoi(text) == getpid());
    length = readlink("/proc/self/exe", text, sizeof text - 1);
    REQUIRE(length > 0);
    text[length] = 0;
    CHECK_TRUE("exe", text[0] == '/' && strcmp(check_base(text), check_base(argv[0])) == 0);
    CHECK_TRUE("exe-is-this-file", stat(text, &st) == 0 && S_ISREG(st.st_mode));
    length = readlink("/proc/self/cwd", text, sizeof text - 1);
    text[length > 0 ? length : 0] = 0;
    CHECK_TRUE("cwd", getcwd(other, sizeof other) && strcmp(text, other) == 0);
    length = readlink("/proc/self/root", text, sizeof text - 1);
    CHECK("root", length);
    prctl(PR_SET_NAME, "a (name) x");
    int fd = open("/proc/self/stat", O_RDONLY);
    REQUIRE(fd >= 0 && (length = read(fd, text, sizeof text - 1)) > 0);
    text[length] = 0;
    int pid, ppid, group, session;
    char state;
    char *end = strrchr(text, ')');
    REQUIRE(end && sscanf(text, "%d (", &pid) == 1 && sscanf(end + 2, "%c %d %d %d", &state, &ppid, &group, &session) == 4);
    CHECK_TRUE("stat-pid", pid == getpid() && ppid == getppid());
    CHECK_TRUE("stat-group", group == getpgrp() && session == getsid(0));
    CHECK("stat-state", state == 'R');
    CHECK_TRUE("stat-name", strncmp(strchr(text, '(') + 1, "a (name) x)", 11) == 0);
    int fields = 0;
    for (char *word = strtok(end + 2, " \n"); word; word = strtok(NULL, " \n"))
        fields++;
    CHECK("stat-fields", fields + 2);
    CHECK_STR("comm", check_read_file("/proc/self/comm"));
    CHECK_STR("status-name", value_of("/proc/self/status", "Name"));
    CHECK_STR("status-state", value_of("/proc/self/status", "State"));
    CHECK_TRUE("status-pid", atoi(value_of("/proc/self/status", "Pid")) == getpid());
    CHECK_TRUE("status-ppid", atoi(value_of("/proc/self/status", "PPid")) == getppid());
    CHECK_STR("status-uid", value_of("/proc/self/status", "Uid"));
    CHECK_STR("status-threads", value_of("/proc/self/status", "Threads"));
    CHECK_TRUE("status-memory", atoi(value_of("/proc/self/status", "VmRSS")) > 0 && strstr(value_of("/proc/self/status", "VmSize"), " kB"));
    signal(SIGUSR1, SIG_IGN);
    CHECK("status-ignored", strtoul(value_of("/proc/self/status", "SigIgn"), NULL, 16) >> (SIGUSR1 - 1) & 1);
    CHECK_TRUE("cmdline", strcmp(check_read_file("/proc/self/cmdline"), argv[0]) == 0);
    fd = open("/proc/self/cmdline", O_RDONLY);
    length = read(fd, text, sizeof text);
    CHECK("cmdline-ends-with-nul", length > 0 && text[length - 1] == 0);
    long pages;
    CHECK("statm", sscanf(check_read_file("/proc/self/statm"), "%ld", &pages) == 1 && pages > 0);
    // The mappings: this function lies in an executable one, a fresh mapping in one with its own rights.
    char *mapped = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(mapped, 4096, PROT_READ);
    check_write_file("mapped-file", "x");
    char *file_map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, open("mapped-file", O_RDONLY), 0);
    FILE *maps = fopen("/proc/self/maps", "r");
    REQUIRE(maps);
    int code = 0, data = 0, stack = 0, named = 0;
    while (fgets(text, sizeof text, maps)) {
        unsigned long from, to;
        char rights[8];
        if (sscanf(text, "%lx-%lx %7s", &from, &to, rights) != 3)
            continue;
        unsigned long here = (unsigned long)(void *)value_of;
        code += here >= from && here < to && strcmp(rights, "r-xp") == 0;
        data += (unsigned long)mapped == from && strcmp(rights, "r--p") == 0;
        named += (unsigned long)file_map == from && strcmp(rights, "r--s") == 0 && strstr(text, "/mapped-file\n") != NULL;
        stack += strstr(text, "[stack]") != NULL && (unsigned long)&st >= from && (unsigned long)&st < to;
    }
    CHECK("maps-code", code);
    CHECK("maps-data", data);
    CHECK("maps-file", named);
    CHECK("maps-stack", stack);
    fclose(maps);
    // Descriptors.
    int file = open("mapped-file", O_RDWR | O_APPEND);
    snprintf(other, sizeof other, "/proc/self/fd/%d", file);
    length = readlink(other, text, sizeof text - 1);
    text[length > 0 ? length : 0] = 0;
    CHECK_STR("fd-link", check_base(text));
    int fds[2];
    REQUIRE(pipe(fds) == 0);
    snprintf(other, sizeof other, "/proc/self/fd/%d", fds[0]);
    length = readlink(other, text, sizeof text - 1);
    text[length > 0 ? length : 0] = 0;
    text[strcspn(text, "0123456789")] = 0;
    CHECK_STR("fd-pipe", text);
    CHECK("fd-closed", readlink("/proc/self/fd/900", text, sizeof text));
    DIR *directory = opendir("/proc/self/fd");
    REQUIRE(directory);
    int entries = 0;
    while (readdir(directory))
        entries++;
    CHECK_TRUE("fd-list", entries >= 2 + 4);
    snprintf(other, sizeof other, "/proc/self/fdinfo/%d", file);
    CHECK_STR("fdinfo-position", value_of(other, "pos"));
    CHECK_TRUE("fdinfo-flags", strtol(value_of(other, "flags"), NULL, 8) == (O_RDWR | O_APPEND | 0100000));
    CHECK("environment-readable", access("/proc/self/environ", R_OK));
    CHECK("missing-process", access("/proc/1073741823/stat", F_OK));
    CHECK("create", open("/proc/self/new", O_CREAT | O_WRONLY, 0644));
    CHECK("unlink", unlink("/proc/self/stat"));
    CHECK_TRUE("limits", strstr(check_read_file("/proc/self/limits"), "Max open files") != NULL);
    CHECK_TRUE("mounts", strstr(check_read_file("/proc/self/mounts"), " /proc proc ") != NULL);
    CHECK_TRUE("task", stat("/proc/self/task", &st) == 0 && S_ISDIR(st.st_mode));
    // A child that has ended but was not collected is a zombie without a command line.
    pid_t child = check_fork();
    if (child == 0)
        _exit(0);
    siginfo_t info;
    REQUIRE(waitid(P_PID, child, &info, WEXITED | WNOWAIT) == 0);
    snprintf(other, sizeof other, "/proc/%d/status", child);
    CHECK_STR("zombie", value_of(other, "State"));
    snprintf(other, sizeof other, "/proc/%d/cmdline", child);
    CHECK("zombie-command", strlen(check_read_file(other)));
    check_wait(child);
    CHECK("collected", access(other, F_OK));
    return 0;
}
