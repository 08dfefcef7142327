// Several processes look up, copy, rename, link and remove in one overlay at a time; then what is there is as it should be, and is the same when it is mounted again.
#include "overlay.h"

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

#define NAMES 12
#define WORKERS 6
#define ROUNDS 1200

static unsigned state;

static unsigned next(unsigned most)
{
    state = state * 1103515245 + 12345;
    return (state >> 16) % most;
}

static const char *some(void)
{
    static char paths[4][32];
    static int turn;
    char *path = paths[turn++ % 4];
    const char *directories[] = { "m", "m/d", "m/d/e", "m/low" };
    snprintf(path, 32, "%s/n%u", directories[next(4)], next(NAMES));
    return path;
}

// Whether a file says what some file was given, maybe several times.
static int is_whole(const char *path)
{
    struct stat status;
    if (lstat(path, &status) != 0)
        return errno == ENOENT;
    if (!S_ISREG(status.st_mode))
        return 1;
    char bytes[4096];
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return errno == ENOENT || errno == ELOOP;
    ssize_t got = read(fd, bytes, sizeof bytes);
    int error = errno;
    close(fd);
    if (got < 0)
        return error == EISDIR;
    for (ssize_t i = 0; i < got; i++)
        if (bytes[i] != "0123456789"[i % 10])
            return 0;
    return 1;
}

static int work(int worker)
{
    state = 1000 + worker;
    for (int round = 0; round < ROUNDS; round++) {
        const char *path = some();
        int fd;
        switch (next(14)) {
        case 0:
            unlink(path);
            break;
        case 1:
            if ((fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644)) >= 0)
                if (write(fd, "0123456789", 10) != 10 || close(fd) != 0)
                    return 1;
            break;
        case 2:
        case 3:
            rename(path, some());
            break;
        case 4:
            link(path, some());
            break;
        case 5:
            if ((fd = open(path, O_RDWR)) >= 0)
                close(fd);
            break;
        case 6:
            chmod(path, 0600 + next(64));
            break;
        case 7:
            mkdir(path, 0755);
            break;
        case 8:
            rmdir(path);
            break;
        case 9:
            syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, some(), RENAME_EXCHANGE);
            break;
        case 10: {
            DIR *directory = opendir("m/d");
            struct dirent *entry;
            while (directory && (entry = readdir(directory)))
                ;
            if (directory)
                closedir(directory);
            break;
        }
        case 11:
            setxattr(path, "user.x", "y", 1, 0);
            break;
        default:
            if (!is_whole(path))
                return 2;
        }
    }
    return 0;
}

// Each name that a directory lists is there, each that is there is listed, and its content is whole.
static int is_consistent(const char *path)
{
    char list[4096], name[64], wanted[16];
    snprintf(list, sizeof list, " %s ", names(path));
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "%s/n%d", path, i);
        snprintf(wanted, sizeof wanted, " n%d ", i);
        if (exists(name) != (strstr(list, wanted) != NULL) || !is_whole(name))
            return 0;
    }
    return 1;
}

static const char *all_names(void)
{
    static char text[16384];
    const char *directories[] = { "m", "m/d", "m/d/e", "m/low" };
    text[0] = 0;
    for (int i = 0; i < 4; i++) {
        strcat(text, names(directories[i]));
        strcat(text, "\n");
    }
    return text;
}

int main(void)
{
    layers();
    REQUIRE(mkdir("a/d", 0755) == 0 && mkdir("b/d", 0755) == 0 && mkdir("b/d/e", 0755) == 0 && mkdir("b/low", 0755) == 0);
    for (int i = 0; i < NAMES; i++) {
        const char *directories[] = { "a", "b", "a/d", "b/d", "b/d/e", "b/low" };
        for (int j = 0; j < 6; j++) {
            char path[32];
            snprintf(path, sizeof path, "%s/n%d", directories[j], i);
            if ((i + j) % 4 == 0)
                REQUIRE(mkdir(path, 0755) == 0);
            else
                check_write_file(path, "0123456789");
        }
    }
    mount_layers(PLAIN);
    pid_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        if ((workers[i] = check_fork()) == 0)
            _exit(may ? work(i) : 0);
    int ended = 0;
    for (int i = 0; i < WORKERS; i++) {
        int status = check_wait(workers[i]);
        ended += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    CHECK_IF("workers", ended == WORKERS);
    CHECK_IF("consistent", is_consistent("m") && is_consistent("m/d") && is_consistent("m/d/e") && is_consistent("m/low"));
    static char before[16384];
    strcpy(before, may ? all_names() : "");
    CHECK_IF("lower-untouched", has("b/low", "n0 n1 n10 n11 n2 n3 n4 n5 n6 n7 n8 n9"));
    CHECK_IF("unmounted", umount("m") == 0);
    CHECK_IF("mounted-again", overlay(PLAIN) == 0);
    CHECK_IF("same", strcmp(before, all_names()) == 0);
    CHECK_IF("consistent-again", is_consistent("m") && is_consistent("m/d") && is_consistent("m/d/e") && is_consistent("m/low"));
    CHECK_IF("unmounted-again", umount("m") == 0);
    return 0;
}
