// What Ebb promises and Linux does not: there are 4,096 mounts at most, with those that are nowhere, and a call for which there is no room changes nothing. A tree that
// is nowhere gives all of them back when its descriptor is closed.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CLONE_TREE (1 | 0x8000)

static long lines(void)
{
    long count = 0;
    FILE *list = fopen("/proc/self/mounts", "r");
    for (int c; list && (c = getc(list)) != EOF;)
        count += c == '\n';
    if (list)
        fclose(list);
    return count;
}

int main(void)
{
    if (mkdir("/t", 0755) != 0 || mount("none", "/t", "tmpfs", 0, "size=1m") != 0 || mkdir("/t/d", 0755) != 0)
        return 1;
    long before = lines();
    // Each doubles what is in /t.
    int doublings = 0;
    while (mount("/t", "/t/d", NULL, MS_BIND | MS_REC, NULL) == 0)
        doublings++;
    printf("doubled %d times, then %s\n", doublings, errno == ENOSPC ? "no room" : "another error");
    printf("all there are: %ld\n", lines() - before);
    int tree = (int)syscall(428, AT_FDCWD, "/t", CLONE_TREE);
    printf("a copy: %s\n", tree < 0 && errno == ENOSPC ? "no room" : "made");
    printf("unmounted: %d\n", umount2("/t/d", MNT_DETACH));
    printf("left: %ld\n", lines() - before);
    int copies = 0, closed = 0, trees[64];
    while (copies < 64 && (trees[copies] = (int)syscall(428, AT_FDCWD, "/t", CLONE_TREE)) >= 0)
        copies++;
    printf("copies until there is no room: %s\n", copies > 1 && copies < 64 && errno == ENOSPC ? "some" : "wrong");
    for (int i = 0; i < copies; i++)
        closed += close(trees[i]) == 0;
    int again = 0;
    while (again < 64 && (trees[again] = (int)syscall(428, AT_FDCWD, "/t", CLONE_TREE)) >= 0)
        again++;
    printf("and again, when those are closed: %s\n", closed == copies && again == copies ? "as many" : "not as many");
    return 0;
}
