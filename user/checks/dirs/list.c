// getdents64 through readdir and directly: every entry once, types, seeking, removal while listing.
#include "../check.h"
#include <dirent.h>

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

// Prints the sorted names of a directory, each followed by the first letter of its type.
static void show(const char *label, const char *path)
{
    DIR *directory = opendir(path);
    REQUIRE(directory);
    char *names[64], text[900] = "";
    int count = 0;
    for (struct dirent *entry; (entry = readdir(directory)) && count < 64; count++) {
        char type = entry->d_type == DT_DIR ? '/' : entry->d_type == DT_LNK ? '@' : entry->d_type == DT_FIFO ? '|' : ' ';
        REQUIRE(asprintf(&names[count], "%s%c", entry->d_name, type) > 0);
    }
    closedir(directory);
    qsort(names, count, sizeof names[0], by_name);
    for (int i = 0; i < count; i++)
        strcat(strcat(text, names[i]), i + 1 < count ? " " : "");
    check_line("%s: %s\n", label, text);
}

int main(void)
{
    struct stat st;
    REQUIRE(mkdir("d", 0755) == 0);
    show("empty", "d");
    check_write_file("d/file", "");
    REQUIRE(mkdir("d/sub", 0755) == 0 && symlink("file", "d/link") == 0 && mkfifo("d/fifo", 0644) == 0);
    show("types", "d");
    REQUIRE(unlink("d/file") == 0 && rename("d/link", "d/renamed") == 0);
    show("after-changes", "d");

    // Many entries: each is seen exactly once through small buffers.
    REQUIRE(mkdir("many", 0755) == 0);
    char path[64];
    for (int i = 0; i < 500; i++) {
        snprintf(path, sizeof path, "many/entry-%03d", i);
        check_write_file(path, "");
    }
    int fd = open("many", O_RDONLY | O_DIRECTORY);
    REQUIRE(fd >= 0);
    char buffer[300];
    int seen[500] = { 0 }, dots = 0;
    long got;
    while ((got = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0)
        for (long at = 0; at < got;) {
            struct dirent *entry = (struct dirent *)(buffer + at);
            int number;
            if (sscanf(entry->d_name, "entry-%d", &number) == 1 && number >= 0 && number < 500)
                seen[number]++;
            else
                dots++;
            at += entry->d_reclen;
        }
    int once = 0;
    for (int i = 0; i < 500; i++)
        once += seen[i] == 1;
    CHECK("end", got);
    CHECK("seen-once", once);
    CHECK("dot-entries", dots);
    CHECK("rewind", lseek(fd, 0, SEEK_SET));
    CHECK_TRUE("listed-again", syscall(SYS_getdents64, fd, buffer, sizeof buffer) > 0);
    CHECK("buffer-too-small", syscall(SYS_getdents64, fd, buffer, 10));
    int file = open("many/entry-000", O_RDONLY);
    CHECK("on-a-file", syscall(SYS_getdents64, file, buffer, sizeof buffer));

    // Inode numbers in the listing are those of stat.
    DIR *directory = opendir("d");
    int same = 0, entries = 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (entry->d_name[0] == '.')
            continue;
        entries++;
        same += fstatat(dirfd(directory), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == entry->d_ino;
    }
    CHECK("inodes-match", same == entries);
    // Removing entries while listing ends with an empty directory.
    DIR *removing = opendir("many");
    int removed = 0;
    for (struct dirent *entry; (entry = readdir(removing));)
        if (entry->d_name[0] == 'e')
            removed += unlinkat(dirfd(removing), entry->d_name, 0) == 0;
    CHECK("removed-while-listing", removed);
    show("emptied", "many");
    // An open directory that was removed lists nothing.
    int gone = open("d/sub", O_RDONLY);
    REQUIRE(rmdir("d/sub") == 0);
    CHECK("removed-directory", syscall(SYS_getdents64, gone, buffer, sizeof buffer));
    return 0;
}
