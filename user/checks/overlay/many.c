// More files than an overlay keeps in mind, and a large file whose copy is cut short by a signal.
#include "overlay.h"

#define FILES 6000
#define BIG (8 << 20)

static char path[64];

static const char *file(const char *in, int which)
{
    snprintf(path, sizeof path, "%s/%02d/f%d", in, which % 50, which);
    return path;
}

static int is_big(const char *name)
{
    static char bytes[65536];
    int fd = open(name, O_RDONLY);
    long at = 0, got;
    while ((got = read(fd, bytes, sizeof bytes)) > 0)
        for (long i = 0; i < got; i++, at++)
            if (bytes[i] != (char)(at / 4096 + 1))
                return 0;
    close(fd);
    return at == BIG;
}

int main(void)
{
    layers();
    for (int i = 0; i < 50; i++) {
        snprintf(path, sizeof path, "b/%02d", i);
        REQUIRE(mkdir(path, 0755) == 0);
    }
    for (int i = 0; i < FILES; i++)
        REQUIRE(close(open(file("b", i), O_CREAT | O_WRONLY, 0644)) == 0);
    static char bytes[4096];
    int fd = open("b/big", O_CREAT | O_WRONLY, 0644);
    for (long at = 0; at < BIG; at += sizeof bytes) {
        memset(bytes, at / 4096 + 1, sizeof bytes);
        REQUIRE(write(fd, bytes, sizeof bytes) == sizeof bytes);
    }
    close(fd);
    mount_layers(PLAIN);

    int kept = open(file("m", 3), O_RDONLY);
    int inside = open("m/07", O_RDONLY | O_DIRECTORY);
    CHECK_IF("copied", chmod(file("m", 11), 0600) == 0 && chmod(file("m", 12), 0600) == 0);
    ino_t first = number(file("m", 11)), directory = number("m/11");
    int all = 1;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < FILES; i++)
            all &= exists(file("m", i));
    CHECK_IF("all-there", all);
    int none = 1;
    for (int i = 0; i < FILES; i++)
        none &= !exists(file("m", i + FILES));
    CHECK_IF("none-there", none);
    CHECK_IF("numbers-stay", number(file("m", 11)) == first && number("m/11") == directory);
    CHECK_IF("copied-stays", (mode(file("m", 12)) & 0777) == 0600);
    struct stat status, again;
    CHECK_IF("kept-is-the-same", fstat(kept, &status) == 0 && stat(file("m", 3), &again) == 0 && status.st_ino == again.st_ino);
    CHECK_IF("kept-changes", fchmod(kept, 0611) == 0 && (mode(file("m", 3)) & 0777) == 0611);
    CHECK_IF("inside-is-the-same", faccessat(inside, "f7", F_OK, 0) == 0 && unlinkat(inside, "f7", 0) == 0 && !exists("m/07/f7"));
    CHECK_IF("above", faccessat(inside, "../08/f8", F_OK, 0) == 0);
    int removed = 1;
    for (int i = 0; i < FILES; i++)
        if (i % 50 != 7 && i % 50 != 8)
            removed &= unlink(file("m", i)) == 0;
    CHECK_IF("removed", removed);
    CHECK_IF("removed-listed", has("m/09", "") && has("m/10", ""));
    CHECK_IF("removed-directory", rmdir("m/09") == 0 && !exists("m/09") && is_whiteout("u/09"));
    CHECK_IF("replaced-directory", mkdir("m/x", 0755) == 0 && rename("m/x", "m/10") == 0 && has("m/10", ""));

    int whole = 1;
    for (int round = 0; round < 12; round++) {
        pid_t pid = check_fork();
        if (pid == 0) {
            if (may)
                open("m/big", O_RDWR);
            pause();
        }
        for (volatile int spin = 0; spin < round * 20000; spin++)
            ;
        kill(pid, SIGKILL);
        check_wait(pid);
        if (may)
            whole &= is_big("m/big") && (!exists("u/big") || is_big("u/big"));
    }
    CHECK_TRUE("cut-short", whole);
    CHECK_IF("copied-then", appends("m/big", "+") && size("m/big") == BIG + 1 && size("b/big") == BIG);
    close(kept), close(inside);
    CHECK_IF("unmounted", umount("m") == 0);
    CHECK_IF("mounted-again", overlay(PLAIN) == 0 && !exists("m/09") && number(file("m", 8)) == number(file("b", 8)));
    CHECK_IF("unmounted-again", umount("m") == 0);
    return 0;
}
