// In a sticky directory a user removes no file of another's, also not one that takes the place of its own just then.
#include "../check.h"
#include <sys/mman.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

#define ROUNDS 60

static void make(const char *name, uid_t owner)
{
    int fd = open(name, O_CREAT | O_EXCL | O_RDWR, 0644);
    REQUIRE(fd >= 0 && fchown(fd, owner, owner) == 0);
    close(fd);
}

int main(void)
{
    volatile int *over = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(over != MAP_FAILED);
    REQUIRE(mkdir("sticky", 0777) == 0 && chmod("sticky", 01777) == 0 && chdir("sticky") == 0);
    pid_t child = fork();
    if (child == 0) {
        REQUIRE(setgid(1000) == 0 && setuid(1000) == 0);
        while (!*over)
            unlink("one");
        _exit(0);
    }
    REQUIRE(child > 0);
    long stolen = 0;
    for (int round = 0; round < ROUNDS; round++) {
        make("other", 0);
        make("one", 1000);
        // Until it was removed under either name.
        while (syscall(SYS_renameat2, AT_FDCWD, "one", AT_FDCWD, "other", RENAME_EXCHANGE) == 0)
            ;
        struct stat status;
        const char *left = stat("one", &status) == 0 ? "one" : "other";
        stolen += stat(left, &status) != 0 || status.st_uid != 0;
        unlink(left);
    }
    *over = 1;
    REQUIRE(waitpid(child, NULL, 0) == child);
    CHECK("stolen", stolen);
    return 0;
}
