// Many names in a directory, many unlinked files, many locks.
#include "many.h"

static int locked;
static long locks;

static void name_of(char *name, long number) { sprintf(name, "file-%ld", number); }

static void enter_directory(const char *what)
{
    char name[64];
    sprintf(name, "/tmp/many-%s-%d", what, (int)getpid());
    must(mkdir(name, 0755), "mkdir");
    must(chdir(name), "chdir");
}

static void make_siblings(long count)
{
    char name[32];
    enter_directory("siblings");
    for (long i = 0; i < count; i++) {
        name_of(name, i);
        must(mknod(name, S_IFREG | 0644, 0), "mknod");
    }
}

static void make_directories(long count)
{
    char name[32];
    enter_directory("directories");
    for (long i = 0; i < count; i++) {
        name_of(name, i);
        must(mkdir(name, 0755), "mkdir");
    }
    name_of(name, count / 2);
    must(chdir(name), "chdir");
}

static uint64_t create_unlink(long count)
{
    REPEAT(call3(SYS_close, call3(SYS_open, (long)"another", O_CREAT | O_RDWR, 0644), 0, 0); call3(SYS_unlink, (long)"another", 0, 0));
}

static uint64_t stat_one(long count)
{
    struct stat status;
    char name[32];
    name_of(name, many / 2);
    REPEAT(call3(SYS_stat, (long)name, (long)&status, 0));
}

static uint64_t rename_one(long count)
{
    char name[32];
    name_of(name, many / 2);
    REPEAT(call3(SYS_rename, (long)name, (long)"another", 0); call3(SYS_rename, (long)"another", (long)name, 0));
}

static uint64_t list_all(long count)
{
    static char buffer[32768];
    uint64_t start = ticks();
    for (long i = 0; i < count; i++) {
        int directory = open(".", O_RDONLY | O_DIRECTORY);
        while (call3(SYS_getdents64, directory, (long)buffer, sizeof buffer) > 0)
            ;
        close(directory);
    }
    return ticks() - start;
}

static uint64_t where_am_i(long count)
{
    static char buffer[4096];
    REPEAT(call3(SYS_getcwd, (long)buffer, sizeof buffer, 0));
}

static void open_unlinked(long count)
{
    enter_directory("unlinked");
    for (long i = 0; i < count; i++) {
        must(open("unlinked", O_CREAT | O_RDWR, 0644), "open");
        must(unlink("unlinked"), "unlink");
    }
}

static uint64_t end_unlinked(long count) { return ending(open_unlinked, count); }

static long lock(int kind, long at)
{
    struct flock lock = { .l_type = kind, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };
    return call3(SYS_fcntl, locked, F_SETLK, (long)&lock);
}

// Locks with a gap between each and the next.
static void make_locks(long count)
{
    enter_directory("locks");
    must(locked = open("locked", O_CREAT | O_RDWR, 0644), "open");
    locks = count;
    for (long i = 0; i < count; i++)
        must(lock(F_RDLCK, 2 * i), "fcntl");
}

static uint64_t lock_unlock(long count)
{
    long middle = locks / 2 * 2 + 1;
    REPEAT(lock(F_WRLCK, middle); lock(F_UNLCK, middle));
}

static uint64_t ask_for_lock(long count)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = locks / 2 * 2 + 1, .l_len = 1 };
    REPEAT(lock.l_type = F_WRLCK; call3(SYS_fcntl, locked, F_GETLK, (long)&lock));
}

static uint64_t end_locks(long count) { return ending(make_locks, count); }

const struct row file_rows[] = {
    { "siblings-create-unlink", make_siblings, create_unlink, 20 },
    { "siblings-stat", make_siblings, stat_one, 20 },
    { "siblings-rename", make_siblings, rename_one, 20 },
    { "siblings-list", make_siblings, list_all, 1 },
    { "siblings-getcwd", make_directories, where_am_i, 10 },
    { "unlinked-end", NULL, end_unlinked, 0 },
    { "locks-lock-unlock", make_locks, lock_unlock, 10 },
    { "locks-ask", make_locks, ask_for_lock, 10 },
    { "locks-end", NULL, end_locks, 0 },
    { 0 },
};
