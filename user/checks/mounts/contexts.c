// File systems that are configured step by step: fsopen(2), fsconfig(2), fsmount(2), fspick(2), and what they say of mistakes. Who may not mount has nothing to compare.
#include "mount_calls.h"
#include <sys/statfs.h>

// The next message of a context, without its line feed; or the error.
static const char *message(int context)
{
    static char text[256];
    ssize_t length = read(context, text, sizeof text - 1);
    if (length < 0)
        return check_errno_name(errno);
    text[length] = 0;
    if (length > 0 && text[length - 1] == '\n')
        text[length - 1] = 0;
    return text;
}

#define CHECK_MESSAGE(name, context) CHECK_STR(name, may ? message(context) : "")

static void opening(void)
{
    CHECK_MAY("open-unknown-type", fails(fsopen("no-such-type", 0), ENODEV));
    CHECK_MAY("open-bad-flags", fails(fsopen("tmpfs", 2), EINVAL));
    CHECK_MAY("open-bad-name", fails(fsopen(BAD_POINTER, 0), EFAULT));
    CHECK_MAY("open-empty-name", fails(fsopen("", 0), ENODEV));
    int context = fsopen("tmpfs", 1);
    CHECK_MAY("open-closes", fcntl(context, F_GETFD) == FD_CLOEXEC);
    CHECK_MAY("open-mode", (fcntl(context, F_GETFL) & O_ACCMODE) == O_RDWR);
    CHECK_MAY("open-no-message", fails(read(context, &(char){ 0 }, 1), ENODATA));
    CHECK_MAY("open-not-written", fails(write(context, "x", 1), EINVAL));
    CHECK_MAY("open-not-sought", fails(lseek(context, 0, SEEK_SET), ESPIPE));
    close(context);
}

static void arguments(void)
{
    int context = fsopen("tmpfs", 0);
    CHECK_MAY("flag-without-key", fails(fsconfig(context, SET_FLAG, NULL, NULL, 0), EINVAL));
    CHECK_MAY("flag-with-value", fails(fsconfig(context, SET_FLAG, "ro", "x", 0), EINVAL));
    CHECK_MAY("flag-with-aux", fails(fsconfig(context, SET_FLAG, "ro", NULL, 1), EINVAL));
    CHECK_MAY("string-without-value", fails(fsconfig(context, SET_STRING, "size", NULL, 0), EINVAL));
    CHECK_MAY("string-with-aux", fails(fsconfig(context, SET_STRING, "size", "1m", 1), EINVAL));
    CHECK_MAY("binary-of-nothing", fails(fsconfig(context, SET_BINARY, "size", "x", 0), EINVAL));
    CHECK_MAY("binary-too-long", fails(fsconfig(context, SET_BINARY, "size", "x", (1 << 20) + 1), EINVAL));
    CHECK_MAY("path-without-value", fails(fsconfig(context, SET_PATH, "source", NULL, 0), EINVAL));
    CHECK_MAY("path-bad-directory", fails(fsconfig(context, SET_PATH, "source", "/", -2), EINVAL));
    CHECK_MAY("fd-negative", fails(fsconfig(context, SET_FD, "source", NULL, -1), EINVAL));
    CHECK_MAY("fd-with-value", fails(fsconfig(context, SET_FD, "source", "x", 0), EINVAL));
    CHECK_MAY("create-with-key", fails(fsconfig(context, CMD_CREATE, "x", NULL, 0), EINVAL));
    CHECK_MAY("unknown-command", fails(fsconfig(context, 100, NULL, NULL, 0), EOPNOTSUPP));
    CHECK_MAY("negative-context", fails(fsconfig(-1, CMD_CREATE, NULL, NULL, 0), EINVAL));
    CHECK_MAY("no-context", fails(fsconfig(999, CMD_CREATE, NULL, NULL, 0), EBADF));
    CHECK_MAY("other-file", fails(fsconfig(0, CMD_CREATE, NULL, NULL, 0), EINVAL));
    CHECK_MAY("bad-key", fails(fsconfig(context, SET_FLAG, BAD_POINTER, NULL, 0), EFAULT));
    CHECK_MAY("bad-value", fails(fsconfig(context, SET_STRING, "size", BAD_POINTER, 0), EFAULT));
    char long_key[300];
    memset(long_key, 'k', sizeof long_key);
    long_key[sizeof long_key - 1] = 0;
    CHECK_MAY("long-key", fails(fsconfig(context, SET_FLAG, long_key, NULL, 0), EINVAL));
    CHECK_MAY("long-value", fails(fsconfig(context, SET_STRING, "source", long_key, 0), EINVAL));
    CHECK_MAY("nothing-was-said", fails(read(context, long_key, sizeof long_key), ENODATA));
    CHECK_MAY("unknown-option", fails(fsconfig(context, SET_FLAG, "colour", NULL, 0), EINVAL));
    CHECK_MESSAGE("unknown-option-message", context);
    CHECK_MAY("unknown-string", fails(fsconfig(context, SET_STRING, "colour", "red", 0), EINVAL));
    CHECK_MESSAGE("unknown-string-message", context);
    CHECK_MAY("bad-size", fails(fsconfig(context, SET_STRING, "size", "big", 0), EINVAL));
    CHECK_MESSAGE("bad-size-message", context);
    CHECK_MAY("source", fsconfig(context, SET_STRING, "source", "here", 0));
    CHECK_MAY("second-source", fails(fsconfig(context, SET_STRING, "source", "there", 0), EINVAL));
    CHECK_MAY("said", strncmp(message(context), "e ", 2) == 0);
    CHECK_MESSAGE("no-more-messages", context);
    // Flags of every file system's, whatever they are given.
    CHECK_MAY("flag-with-string", fsconfig(context, SET_STRING, "sync", "false", 0));
    CHECK_MAY("flag-with-path", fsconfig(context, SET_PATH, "async", "/", AT_FDCWD));
    CHECK_MAY("flag-with-file", fsconfig(context, SET_FD, "dirsync", NULL, 0));
    CHECK_MAY("again-unknown", fails(fsconfig(context, SET_FLAG, "colour", NULL, 0), EINVAL));
    CHECK_MAY("too-short-for-message", fails(read(context, long_key, 3), EMSGSIZE));
    CHECK_MESSAGE("that-message-stays", context);
    for (int i = 0; i < 10; i++) {
        char key[] = { 'k', (char)('0' + i), 0 };
        fsconfig(context, SET_FLAG, key, NULL, 0);
    }
    CHECK_MESSAGE("oldest-are-gone", context);
    close(context);
}

static unsigned long flags_of(int fd)
{
    struct statfs status;
    return fstatfs(fd, &status) == 0 ? status.f_flags & ~0x20UL : 0;
}

static void mounting(void)
{
    int context = fsopen("tmpfs", 0);
    CHECK_MAY("mount-too-early", fails(fsmount(context, 0, 0), EINVAL));
    CHECK_MAY("change-too-early", fails(fsconfig(context, CMD_RECONFIGURE, NULL, NULL, 0), EBUSY));
    CHECK_MAY("set-size", fsconfig(context, SET_STRING, "size", "8k", 0));
    CHECK_MAY("set-mode", fsconfig(context, SET_STRING, "mode", "0711", 0));
    CHECK_MAY("set-source", fsconfig(context, SET_STRING, "source", "my-source", 0));
    CHECK_MAY("create", fsconfig(context, CMD_CREATE, NULL, NULL, 0));
    CHECK_MAY("create-twice", fails(fsconfig(context, CMD_CREATE, NULL, NULL, 0), EBUSY));
    CHECK_MAY("set-too-late", fails(fsconfig(context, SET_STRING, "size", "1m", 0), EBUSY));
    CHECK_MAY("mount-bad-flags", fails(fsmount(context, 2, 0), EINVAL));
    CHECK_MAY("mount-bad-attribute", fails(fsmount(context, 0, 0x400000), EINVAL));
    CHECK_MAY("mount-bad-times", fails(fsmount(context, 0, ATTR_NOATIME | ATTR_STRICTATIME), EINVAL));
    CHECK_MAY("mount-other-file", fails(fsmount(0, 0, 0), EINVAL));
    CHECK_MAY("mount-no-file", fails(fsmount(999, 0, 0), EBADF));
    int tree = fsmount(context, 1, ATTR_NOSUID | ATTR_NODEV | ATTR_NOATIME);
    CHECK_MAY("mount-closes", fcntl(tree, F_GETFD) == FD_CLOEXEC);
    CHECK_MAY("mount-is-path", (fcntl(tree, F_GETFL) & O_PATH) != 0);
    CHECK_MAY("mount-twice", fails(fsmount(context, 0, 0), EBUSY));
    CHECK_MAY("mount-flags", flags_of(tree));
    struct stat status;
    CHECK_MAY("root-mode", fstat(tree, &status) == 0 ? status.st_mode & 07777 : -1);
    CHECK_MAY("made-in-tree", mkdirat(tree, "d", 0755));
    CHECK_MAY("not-in-list", fails(umount2("m", 0), EINVAL));
    CHECK_MAY("moved", move_mount(tree, "", AT_FDCWD, "m", FROM_EMPTY));
    CHECK_MAY("is-there", has("m/d"));
    CHECK_MAY("moved-from-there", make("m2") || move_mount(tree, "", AT_FDCWD, "m2", FROM_EMPTY));
    CHECK_MAY("is-there-now", has("m2/d") && !has("m/d"));
    close(tree);
    CHECK_MAY("stays-without-descriptor", has("m2/d"));
    int file = open("m2/f", O_CREAT | O_RDWR, 0644);
    static char page[4096];
    CHECK_MAY("size-counts", write(file, page, 4096) == 4096 && write(file, page, 4096) == 4096 ? fails(write(file, page, 4096), ENOSPC) : -2);
    CHECK_MAY("change-size", fsconfig(context, SET_STRING, "size", "16k", 0) || fsconfig(context, CMD_RECONFIGURE, NULL, NULL, 0));
    CHECK_MAY("new-size-counts", write(file, page, 4096));
    int picked = fspick(AT_FDCWD, "m2", 1);
    CHECK_MAY("picked-closes", fcntl(picked, F_GETFD) == FD_CLOEXEC);
    CHECK_MAY("picked-creates-not", fails(fsconfig(picked, CMD_CREATE, NULL, NULL, 0), EBUSY));
    CHECK_MAY("picked-mounts-not", fails(fsmount(picked, 0, 0), EBUSY));
    CHECK_MAY("picked-unknown", fails(fsconfig(picked, SET_FLAG, "colour", NULL, 0), EINVAL));
    CHECK_MESSAGE("picked-message", picked);
    CHECK_MAY("read-only-while-written", fsconfig(picked, SET_FLAG, "ro", NULL, 0) == 0 ? fails(fsconfig(picked, CMD_RECONFIGURE, NULL, NULL, 0), EBUSY) : -2);
    close(file);
    close(picked);
    picked = fspick(AT_FDCWD, "m2", 0);
    CHECK_MAY("read-only", fsconfig(picked, SET_FLAG, "ro", NULL, 0) || fsconfig(picked, CMD_RECONFIGURE, NULL, NULL, 0));
    CHECK_MAY("read-only-counts", fails(make("m2/new"), EROFS));
    CHECK_MAY("writable", fsconfig(picked, SET_FLAG, "rw", NULL, 0) || fsconfig(picked, CMD_RECONFIGURE, NULL, NULL, 0));
    CHECK_MAY("writable-counts", make("m2/new"));
    close(picked);
    close(context);
    CHECK_MAY("pick-no-mount", fails(fspick(AT_FDCWD, "m2/d", 0), EINVAL));
    CHECK_MAY("pick-absent", fails(fspick(AT_FDCWD, "absent", 0), ENOENT));
    CHECK_MAY("pick-bad-flags", fails(fspick(AT_FDCWD, "m2", 0x10), EINVAL));
    CHECK_MAY("pick-empty", fails(fspick(AT_FDCWD, "", 0), ENOENT));
    CHECK_MAY("pick-link", symlink("m2", "link") || close(fspick(AT_FDCWD, "link", 0)));
    CHECK_MAY("pick-link-itself", fails(fspick(AT_FDCWD, "link", 2), EINVAL));
    CHECK_MAY("gone", umount("m2"));
}

static void old_options(void)
{
    CHECK_MAY("old-mounted", mount("none", "m", "tmpfs", 0, "size=8k"));
    int file = open("m/f", O_CREAT | O_RDWR, 0644);
    static char page[4096];
    CHECK_MAY("old-full", write(file, page, 4096) == 4096 && write(file, page, 4096) == 4096 ? fails(write(file, page, 4096), ENOSPC) : -2);
    CHECK_MAY("old-too-small", fails(mount(NULL, "m", NULL, MS_REMOUNT, "size=4k"), EINVAL));
    CHECK_MAY("old-larger", mount(NULL, "m", NULL, MS_REMOUNT, "size=12k"));
    CHECK_MAY("old-room", write(file, page, 4096));
    CHECK_MAY("old-bad", fails(mount(NULL, "m", NULL, MS_REMOUNT, "colour=red"), EINVAL));
    close(file);
    struct statfs status;
    CHECK_MAY("old-nosuid", mount(NULL, "m", NULL, MS_REMOUNT | MS_NOSUID, NULL) || statfs("m", &status) ? -1 : (long)(status.f_flags & ~0x20UL));
    CHECK_MAY("old-noexec", mount(NULL, "m", NULL, MS_REMOUNT | MS_NOEXEC | MS_NOATIME, NULL) || statfs("m", &status) ? -1 : (long)(status.f_flags & ~0x20UL));
    CHECK_MAY("old-times-stay", mount(NULL, "m", NULL, MS_REMOUNT, NULL) || statfs("m", &status) ? -1 : (long)(status.f_flags & ~0x20UL));
    unlink("m/f");
    check_write_file("m/program", "x");
    CHECK_MAY("old-set-id", chmod("m/program", 04755) || mount(NULL, "m", NULL, MS_REMOUNT | MS_NOSUID, NULL));
    CHECK_MAY("old-gone", umount("m"));
}

int main(void)
{
    begin_in_own_mount();
    REQUIRE(make("m") == 0);
    if (may) {
        opening();
        arguments();
        mounting();
        old_options();
    }
    CHECK_CHILD("unprivileged", {
        if (may) {
            int context = fsopen("tmpfs", 0);
            REQUIRE(setuid(1000) == 0);
            CHECK("unprivileged-open", fsopen("tmpfs", 0));
            CHECK("unprivileged-open-unknown", fsopen("no-such-type", 0));
            CHECK("unprivileged-create", fsconfig(context, CMD_CREATE, NULL, NULL, 0));
            CHECK("unprivileged-mount", fsmount(context, 0, 0));
            CHECK("unprivileged-pick", fspick(AT_FDCWD, "/", 0));
        }
    });
    end_own_mount();
    return 0;
}
