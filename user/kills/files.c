// Open files and locks of files.
#include "kills.h"
#include <sys/file.h>

static void open_files(int amount)
{
    static const char *const names[] = { "/tmp/page", "/dev/null", "/proc/self/maps", "/proc/self/fd", "/tmp", "/cgroup/cgroup.procs", "/proc/self/mem" };
    for (int i = 0; i < amount; i++)
        if (open(names[any(sizeof names / sizeof names[0])], O_RDONLY) < 0)
            return;
}

static void unlinked(int amount)
{
    static char content[PAGE * 8];
    char name[48];
    for (int i = 0; i < amount; i++) {
        snprintf(name, sizeof name, OWN "/unlinked-%d-%d", getpid(), i);
        int file = open(name, O_CREAT | O_RDWR, 0600);
        if (file < 0)
            return;
        (void)!write(file, content, any(sizeof content));
        unlink(name);
    }
}

static void flocks(int amount)
{
    for (int i = 0; i < amount; i++) {
        int file = open(LOCKED_FILE, O_RDWR);
        if (file < 0)
            return;
        flock(file, LOCK_SH | LOCK_NB);
    }
}

static void lock_records(int amount, int command)
{
    int file = open(LOCKED_FILE, O_RDWR);
    for (int i = 0; file >= 0 && i < amount; i++) {
        struct flock lock = { .l_type = any(2) ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET, .l_start = 2 * any(4 * amount), .l_len = 1 };
        fcntl(file, command, &lock);
    }
}

static void record_locks(int amount) { lock_records(amount, F_SETLK); }
static void file_record_locks(int amount) { lock_records(amount, F_OFD_SETLK); }

// Children wait for locks that their parent holds.
static void lock_waiters(int amount)
{
    int file = open(LOCKED_FILE, O_RDWR);
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = 1 };
    if (file < 0 || fcntl(file, F_SETLK, &lock) < 0)
        return;
    for (int i = 0; i < amount; i++)
        if (fork() == 0) {
            fcntl(file, F_SETLKW, &lock);
            for (;;)
                pause();
        }
}

static void duplicates(int amount)
{
    int one = open("/tmp/page", O_RDONLY);
    while (amount-- > 0 && dup(one) >= 0)
        ;
}

const struct kind file_kinds[] = {
    { "open-files", 2000, open_files },
    { "unlinked", 500, unlinked },
    { "flocks", 1000, flocks },
    { "record-locks", 1000, record_locks },
    { "file-record-locks", 1000, file_record_locks },
    { "lock-waiters", 50, lock_waiters },
    { "duplicates", 4000, duplicates },
    { 0 },
};
