// Open files and locks of files.
#include "groups.h"
#include <sys/file.h>

// Linux looks at all locks of a file to add one: files with a thousand each keep that from taking for ever.
enum { THOUSAND = 1000 };

static int one;

const char *numbered(const char *prefix, long number)
{
    static char name[64];
    char *end = stpcpy(name, prefix), digits[20];
    int count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    while (count > 0)
        *end++ = digits[--count];
    *end = 0;
    return name;
}

const char *file_name(long index) { return numbered("/tmp/files/", index); }
const char *file_of_thousand(long index) { return numbered("/tmp/thousand", index / THOUSAND); }

static void create(const char *name)
{
    int file = open(name, O_CREAT | O_RDWR, 0644);
    must(file, "create a file");
    close(file);
}

void prepare_files(long count)
{
    mkdir("/tmp/files", 0755);
    for (long i = 0; i < count; i++)
        create(file_name(i));
}

void prepare_file_of_thousand(long count)
{
    for (long i = 0; i < count; i += THOUSAND)
        create(file_of_thousand(i));
}

static void prepare_one(long count)
{
    (void)count;
    prepare_files(1);
}

static long open_one(long index)
{
    (void)index;
    return call3(SYS_open, (long)file_name(0), O_RDWR, 0);
}

static long open_each(long index) { return call3(SYS_open, (long)file_name(index), O_RDWR, 0); }

static long open_unlinked(long index)
{
    (void)index;
    long file = call3(SYS_open, (long)"/tmp/unlinked", O_CREAT | O_RDWR, 0644);
    if (file < 0)
        return file;
    long result = call3(SYS_write, file, (long)"", 1);
    call3(SYS_unlink, (long)"/tmp/unlinked", 0, 0);
    return result;
}

// Opens the file for the next thousand where the last is full.
static long open_thousand(long index)
{
    return index % THOUSAND == 0 ? one = call3(SYS_open, (long)file_of_thousand(index), O_RDWR, 0) : 0;
}

static long lock_record(long index)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = index % THOUSAND * 2, .l_len = 1 };
    long result = open_thousand(index);
    return result < 0 ? result : call3(SYS_fcntl, one, F_SETLK, (long)&lock);
}

static long lock_file(long index)
{
    long file = call3(SYS_open, (long)file_of_thousand(index), O_RDWR, 0);
    return file < 0 ? file : call3(SYS_flock, file, LOCK_SH, 0);
}

const struct class file_classes[] = {
    { "open-one", 400, prepare_one, NULL, open_one, NULL },
    { "open-many", 2000, prepare_files, NULL, open_each, NULL },
    { "unlinked", 6000, NULL, NULL, open_unlinked, NULL },
    { "record-locks", 300, prepare_file_of_thousand, NULL, lock_record, NULL },
    { "flocks", 700, prepare_file_of_thousand, NULL, lock_file, NULL },
    { 0 },
};
