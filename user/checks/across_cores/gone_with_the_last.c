// What goes with its last user is not kept when that is gone, also while another core is in system calls. Who may not mount has nothing to compare.
#include "../check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/statfs.h>

#define ROUNDS 300

static atomic_int is_over;

static void *make_calls(void *unused)
{
    while (!is_over)
        access("/tmp", F_OK);
    return unused;
}

static void copy_this_program(const char *to)
{
    char part[65536];
    int from = open("/proc/self/exe", O_RDONLY), copy = open(to, O_CREAT | O_WRONLY, 0700);
    for (ssize_t len; (len = read(from, part, sizeof part)) > 0;)
        REQUIRE(write(copy, part, len) == len);
    close(from);
    close(copy);
}

// Runs a copy of this program, and waits until it has ended.
static void run(const char *program)
{
    pid_t child = fork();
    if (child == 0) {
        execl(program, "program", "child", NULL);
        _exit(1);
    }
    REQUIRE(check_wait(child) == 0);
}

static long free_blocks(const char *directory)
{
    struct statfs now;
    REQUIRE(statfs(directory, &now) == 0);
    return now.f_bfree;
}

// The last description of a file without names was only read.
static int files_left(void)
{
    static char content[100000];
    int left = 0;
    REQUIRE(mount("none", "m", "tmpfs", 0, "size=1m") == 0);
    long all = free_blocks("m");
    for (int round = 0; round < ROUNDS; round++) {
        int fd = open("m/file", O_CREAT | O_WRONLY, 0600);
        REQUIRE(write(fd, content, sizeof content) == sizeof content);
        close(fd);
        int reader = open("m/file", O_RDONLY), other = open("m/file", O_RDONLY);
        if (round % 2)
            close(other);
        REQUIRE(reader >= 0 && unlink("m/file") == 0);
        if (round % 2 == 0)
            close(other);
        close(reader);
        // With several cores it may take a moment.
        for (int tries = 0; tries < CHECK_TRIES && free_blocks("m") != all; tries++)
            usleep(10000);
        left += free_blocks("m") != all;
    }
    REQUIRE(umount("m") == 0);
    return left;
}

// A program that ran from a mount has ended, and was waited for.
static int mounts_in_use(void)
{
    int in_use = 0;
    for (int round = 0; round < ROUNDS; round++) {
        REQUIRE(mount("none", "m", "tmpfs", 0, "size=4m") == 0);
        copy_this_program("m/program");
        run("m/program");
        in_use += umount("m") != 0 && errno == EBUSY;
        umount("m");
    }
    return in_use;
}

static int busy_programs(void)
{
    int busy = 0;
    struct stat program;
    REQUIRE(stat("program", &program) == 0);
    off_t size = program.st_size;
    for (int round = 0; round < ROUNDS; round++) {
        run("program");
        int fd = open("program", O_WRONLY);
        busy += fd < 0 && errno == ETXTBSY;
        close(fd);
        busy += truncate("program", size) != 0;
    }
    return busy;
}

int main(int count, char **arguments)
{
    (void)arguments;
    if (count > 1)
        return 0;
    REQUIRE(mkdir("m", 0700) == 0);
    int may = mount("none", "m", "tmpfs", 0, "size=64k") == 0 && umount("m") == 0;
    copy_this_program("program");
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, make_calls, NULL) == 0);
    int files = may ? files_left() : 0, mounts = may ? mounts_in_use() : 0, busy = busy_programs();
    is_over = 1;
    pthread_join(thread, NULL);
    CHECK("files whose memory was left", files);
    CHECK("mounts in use by programs that have ended", mounts);
    CHECK("programs that could not be written after their end", busy);
    return 0;
}
