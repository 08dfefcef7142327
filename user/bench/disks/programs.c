// Programs of Debian's with their files on the disk.
#include "disks.h"
#include "../programs.h"

#define DATABASE DISK "/speed.db"
#define TREE DISK "/tree"
#define UNPACKED DISK "/unpacked"
#define ARCHIVE DISK "/tree.tar"

#define RUN(...) run_in(NULL, NULL, (const char *const[]) { __VA_ARGS__, NULL })

static void sqlite(const char *script)
{
    run_in(NULL, script, (const char *const[]) { "/usr/bin/sqlite3", "-batch", DATABASE, NULL });
    sync_disk();
}

static void sqlite_speed(const struct row *row)
{
    (void)row;
    sqlite("/sql/speed");
}

static void sqlite_inserts(const struct row *row)
{
    (void)row;
    sqlite("/sql/inserts");
}

static void sqlite_inserts_wal(const struct row *row)
{
    (void)row;
    sqlite("/sql/inserts-wal");
}

// The first start of a program reads it from the archive in memory.
static void start_sqlite(const struct row *row)
{
    (void)row;
    RUN("/usr/bin/sqlite3", "-version");
}

static void delete_database(const struct row *row)
{
    (void)row;
    must(unlink(DATABASE), "unlink the database");
}

static void unpack(const struct row *row)
{
    (void)row;
    RUN("/usr/bin/tar", "-xf", ARCHIVE, "-C", UNPACKED);
    sync_disk();
}

// With the archive in memory.
static void prepare_unpacking(const struct row *row)
{
    (void)row;
    must(mkdir(UNPACKED, 0755), "mkdir");
    RUN("/usr/bin/tar", "-tf", ARCHIVE);
}

static void prepare_deletion(const struct row *row)
{
    prepare_unpacking(row);
    unpack(row);
}

static void delete_unpacked(const struct row *row)
{
    (void)row;
    RUN("/usr/bin/rm", "-r", UNPACKED);
    sync_disk();
}

static void list(const struct row *row)
{
    (void)row;
    RUN("/usr/bin/ls", "-lR", TREE);
}

// The first time git sees that the files' inodes are others than those that it has noted on the host, and notes these.
static void git_status(const struct row *row)
{
    (void)row;
    RUN("/usr/bin/git", "-c", "safe.directory=*", "-C", TREE, "status", "--porcelain");
}

static void grep(const struct row *row)
{
    (void)row;
    RUN("/usr/bin/grep", "-rl", "--exclude-dir=.git", "found_in_some", TREE);
}

static void python(const struct row *row)
{
    (void)row;
    run_in(DISK, NULL, (const char *const[]) { "/usr/bin/python3", "-c", "pass", NULL });
}

const struct row program_rows[] = {
    { "sqlite-speed", start_sqlite, 0, sqlite_speed, delete_database, { 0 } },
    { "sqlite-inserts", start_sqlite, 0, sqlite_inserts, delete_database, { 0 } },
    { "sqlite-inserts-wal", start_sqlite, 0, sqlite_inserts_wal, delete_database, { 0 } },
    { "tar-x", prepare_unpacking, 0, unpack, delete_unpacked, { 0 } },
    { "rm-r", prepare_deletion, 0, delete_unpacked, NULL, { 0 } },
    { "ls-cold", list, 1, list, NULL, { 0 } },
    { "git-status-cold", git_status, 1, git_status, NULL, { 0 } },
    { "git-status", git_status, 0, git_status, NULL, { 0 } },
    { "grep-cold", grep, 1, grep, NULL, { 0 } },
    { "grep", grep, 0, grep, NULL, { 0 } },
    { "python-cold", python, 1, python, NULL, { 0 } },
    { 0 },
};
