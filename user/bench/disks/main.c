// What programs cost whose files are on a disk: one static program that is process 1 on Linux and on Ebb.
//
// Each row runs by itself: the disk, /dev/vda, is mounted before and unmounted after it. What counts stands between two marks, which QEMU's plugin knows, and its
// time by the monotonic clock is printed: `row<TAB>nanoseconds`. Which rows there are the file /rows says; without it all are.
#include "disks.h"
#include "../programs.h"
#include <time.h>

static const struct row *const tables[] = { access_rows, program_rows };

void sync_disk(void)
{
    int directory = open(DISK, O_RDONLY | O_DIRECTORY);
    must(directory, "open the disk's root");
    must(syncfs(directory), "syncfs");
    close(directory);
}

static long long now(void)
{
    struct timespec time;
    must(clock_gettime(CLOCK_MONOTONIC, &time), "clock_gettime");
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void mount_disk(void)
{
    must(mount("/dev/vda", DISK, "ext4", 0, NULL), "mount /dev/vda");
}

static void unmount_disk(void)
{
    must(umount(DISK), "umount");
}

static void measure(const struct row *row)
{
    mount_disk();
    if (row->prepare)
        row->prepare(row);
    sync_disk();
    if (row->cold) {
        unmount_disk();
        mount_disk();
    }
    long long start = now();
    MARK_BEGIN();
    row->run(row);
    MARK_END();
    long long took = now() - start;
    if (row->clean)
        row->clean(row);
    unmount_disk();
    printf("%s\t%lld\n", row->name, took);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (getpid() != 1) {
        fprintf(stderr, "bench: this is process 1 of a machine that `ebb-bench disks` makes\n");
        return 1;
    }
    become_init();
    load_modules();
    choose(argc, argv);
    mkdir(DISK, 0755);
    for (size_t table = 0; table < sizeof tables / sizeof tables[0]; table++)
        for (const struct row *row = tables[table]; row->name; row++)
            if (chosen(row->name))
                measure(row);
    done();
}
