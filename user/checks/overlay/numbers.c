// st_dev, st_ino and d_ino of files of an overlay whose layers are on one file system, and on several; listings; running programs.
#include "overlay.h"
#include <sys/mman.h>

static ino_t listed(const char *directory, const char *name)
{
    DIR *stream = opendir(directory);
    struct dirent *entry;
    ino_t found = 0;
    while ((entry = readdir(stream)))
        if (strcmp(entry->d_name, name) == 0)
            found = entry->d_ino;
    closedir(stream);
    return found;
}

// Lists a directory of many names in small pieces, while names are made and removed, and says whether each name that stays is seen once.
static int stays_in_place(const char *path, int count)
{
    char bytes[256], name[64];
    static int seen[2000];
    memset(seen, 0, sizeof seen);
    int fd = open(path, O_RDONLY | O_DIRECTORY), step = 0;
    long got;
    while ((got = syscall(SYS_getdents64, fd, bytes, sizeof bytes)) > 0) {
        for (long at = 0; at < got; at += *(unsigned short *)(bytes + at + 16)) {
            int which;
            if (sscanf(bytes + at + 19, "n%d", &which) == 1 && which < 2000)
                seen[which]++;
        }
        snprintf(name, sizeof name, "%s/extra%d", path, step++ % 7);
        if (unlink(name) != 0)
            close(open(name, O_CREAT | O_WRONLY, 0600));
    }
    close(fd);
    for (int i = 0; i < count; i++)
        if (seen[i] != 1)
            return 0;
    return got == 0;
}

static int is_busy(const char *path)
{
    // A failing open tells; one that succeeds would copy the file.
    int fd = open(path, O_WRONLY), was = errno;
    if (fd >= 0)
        close(fd);
    errno = was;
    return fd < 0 && was == ETXTBSY;
}

int main(int argc, char **argv)
{
    if (argc > 2)
        pause();
    if (argc > 1)
        return 42;
    char self[4096];
    ssize_t self_len = readlink("/proc/self/exe", self, sizeof self - 1);
    REQUIRE(self_len > 0);
    self[self_len] = 0;
    layers();
    REQUIRE(mkdir("a/d", 0755) == 0 && mkdir("b/d", 0755) == 0 && mkdir("b/e", 0755) == 0);
    check_write_file("a/f", "a");
    check_write_file("b/g", "b");
    REQUIRE(link("b/g", "b/h") == 0);
    check_write_file("u/up", "u");
    for (int i = 0; i < 300; i++) {
        char path[32];
        snprintf(path, sizeof path, "%s/n%d", i % 3 ? "b/d" : "a/d", i);
        check_write_file(path, "");
        snprintf(path, sizeof path, "b/d/n%d", i);
        check_write_file(path, "");
    }
    int in = open(self, O_RDONLY), out = open("b/program", O_CREAT | O_WRONLY, 0755);
    char bytes[65536];
    ssize_t got;
    while ((got = read(in, bytes, sizeof bytes)) > 0)
        REQUIRE(write(out, bytes, got) == got);
    close(in), close(out);
    mount_layers(PLAIN);
    CHECK_IF("one-device", device("m") == device("m/f") && device("m/f") == device("m/d") && device("m/up") == device("m"));
    CHECK_IF("own-device", device("m") != device("a"));
    CHECK_IF("lower-number", number("m/f") == number("a/f"));
    CHECK_IF("upper-number", number("m/up") == number("u/up"));
    CHECK_IF("merged-number", number("m/d") == number("a/d"));
    CHECK_IF("directory-number", number("m/e") == number("b/e"));
    CHECK_IF("listed-number", listed("m", "f") == number("m/f") && listed("m", "d") == number("m/d"));
    CHECK_IF("hard-links-below", number("m/g") == number("m/h") && links("m/g") == 2);
    CHECK_IF("copied", appends("m/f", "+") && number("m/f") == number("a/f") && links("m/f") == 1);
    CHECK_IF("copied-listed", listed("m", "f") == number("m/f"));
    CHECK_IF("link-copied", appends("m/g", "+") && says("m/g", "b+") && says("m/h", "b"));
    CHECK_IF("link-copied-number", number("m/g") == number("u/g") && number("m/h") == number("b/h"));
    CHECK_IF("link-copied-links", links("m/g") == 1 && links("m/h") == 2);
    CHECK_IF("directory-copied", chmod("m/e", 0700) == 0 && number("m/e") == number("b/e"));
    CHECK_IF("new-links", link("m/up", "m/up2") == 0 && number("m/up") == number("m/up2") && links("m/up") == 2);
    CHECK_IF("positions", stays_in_place("m/d", 300));
    CHECK_IF("positions-again", stays_in_place("m/d", 300));

    CHECK_IF("runs", ({
                 pid_t pid = fork();
                 if (pid == 0) {
                     execl("m/program", "program", "x", NULL);
                     _exit(1);
                 }
                 int status = check_wait(pid);
                 WIFEXITED(status) && WEXITSTATUS(status) == 42;
             }));
    char path[4200], here[2048];
    REQUIRE(getcwd(here, sizeof here));
    pid_t pid = check_fork();
    if (pid == 0) {
        // It may be open for writing just now.
        while (may)
            execl("m/program", "program", "x", "waits", NULL);
        pause();
    }
    CHECK_SOON("running-is-busy", !may || is_busy("m/program"));
    CHECK_IF("running-truncate", fails(truncate("m/program", 1), ETXTBSY));
    char shown[4096] = "";
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    CHECK_IF("name-of-running", readlink(path, shown, sizeof shown - 1) > 0 && strstr(shown, "/t/m/program"));
    kill(pid, SIGKILL);
    check_wait(pid);
    int fd = open("m/program", O_RDONLY);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    memset(shown, 0, sizeof shown);
    CHECK_IF("name-of-open-file", readlink(path, shown, sizeof shown - 1) > 0 && strncmp(shown, here, strlen(here)) == 0 && strcmp(shown + strlen(here), "/m/program") == 0);
    void *mapped = may ? mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) : NULL;
    FILE *maps = fopen("/proc/self/maps", "r");
    int is_named = 0;
    while (fgets(bytes, sizeof bytes, maps))
        is_named |= strstr(bytes, "/m/program") != NULL;
    fclose(maps);
    CHECK_IF("name-of-mapping", is_named);
    CHECK_IF("number-of-mapping-stays", mapped != MAP_FAILED && number("m/program") == number("b/program"));
    close(fd);
    CHECK_IF("busy-mapping", fails(umount("m"), EBUSY));
    if (may)
        munmap(mapped, 4096);
    CHECK_IF("unmounted", umount("m") == 0);

    CHECK_IF("second-store", mount("none", "n", "tmpfs", 0, "") == -1 || 1);
    REQUIRE(mkdir("n", 0755) == 0);
    CHECK_IF("second-mounted", mount("none", "n", "tmpfs", 0, "mode=755") == 0 && mkdir("n/d", 0755) == 0);
    if (may)
        check_write_file("n/low", "n");
    CHECK_IF("two-stores", overlay("lowerdir=n:b,upperdir=u,workdir=w") == 0);
    CHECK_IF("two-directories", device("m/d") == device("m") && device("m") != device("n") && device("m") != device("u"));
    CHECK_IF("two-lower-file", device("m/low") != device("m") && device("m/low") != device("n") && number("m/low") == number("n/low"));
    CHECK_IF("two-upper-file", device("m/up") != device("u") && device("m/up") != device("m") && number("m/up") == number("u/up"));
    CHECK_IF("two-other-lower", device("m/program") == device("m/up") && number("m/program") == number("b/program"));
    dev_t before = device("m/low");
    CHECK_IF("two-copied", appends("m/low", "+") && device("m/low") == before && number("m/low") == number("n/low"));
    CHECK_IF("two-unmounted", umount("m") == 0 && umount("n") == 0);
    return 0;
}
