// What mount(2) takes and refuses for an overlay, what it shows of it, and overlays that cannot be written or are on another one.
#include "overlay.h"
#include <sys/statfs.h>

#define OVERLAY_MAGIC 0x794c7630

// Whether it can be mounted so; it is unmounted again.
static int takes(const char *options)
{
    if (overlay(options) != 0)
        return 0;
    return umount("m") == 0;
}

static int refuses(const char *options, int error)
{
    int result = overlay(options), was = errno;
    if (result == 0)
        umount("m");
    errno = was;
    return fails(result, error);
}

static int shows(const char *options, const char *text)
{
    if (overlay(options) != 0)
        return 0;
    static char mounts[65536];
    int fd = open("/proc/self/mounts", O_RDONLY);
    ssize_t len = 0, got;
    while ((got = read(fd, mounts + len, sizeof mounts - 1 - len)) > 0)
        len += got;
    mounts[len] = 0;
    close(fd);
    umount("m");
    char *line = strstr(mounts, "/t/m overlay ");
    if (!line)
        return 0;
    *strchrnul(line, '\n') = 0;
    return strstr(line, text) != NULL;
}

int main(void)
{
    layers();
    REQUIRE(mkdir("c", 0755) == 0 && mkdir("b/in", 0755) == 0 && mkdir("u/in", 0755) == 0 && mkdir("w/in", 0755) == 0);
    REQUIRE(mkdir("with:colon", 0755) == 0 && mkdir("n", 0755) == 0 && mkdir("other", 0755) == 0);
    REQUIRE(mkdir("u2", 0755) == 0 && mkdir("w2", 0755) == 0);
    check_write_file("a/file", "a");
    check_write_file("b/in/file", "b");
    check_write_file("with:colon/colon", "c");
    mount_layers(PLAIN);
    CHECK_IF("first", umount("m") == 0);
    CHECK_IF("plain", takes(PLAIN));
    CHECK_IF("one-lower", takes("lowerdir=a,upperdir=u,workdir=w"));
    CHECK_IF("redirect-on", takes(PLAIN ",redirect_dir=on"));
    CHECK_IF("redirect-off", takes(PLAIN ",redirect_dir=off"));
    CHECK_IF("redirect-follow", takes(PLAIN ",redirect_dir=follow"));
    CHECK_IF("redirect-nofollow", takes(PLAIN ",redirect_dir=nofollow"));
    CHECK_IF("redirect-unknown", refuses(PLAIN ",redirect_dir=some", EINVAL));
    CHECK_IF("metacopy-off", takes(PLAIN ",metacopy=off"));
    CHECK_IF("index-off", takes(PLAIN ",index=off"));
    CHECK_IF("xino-off", takes(PLAIN ",xino=off"));
    CHECK_IF("xino-auto", takes(PLAIN ",xino=auto"));
    CHECK_IF("xino-on", takes(PLAIN ",xino=on"));
    CHECK_IF("xino-unknown", refuses(PLAIN ",xino=maybe", EINVAL));
    CHECK_IF("userxattr", takes(PLAIN ",userxattr"));
    CHECK_IF("userxattr-redirect", refuses(PLAIN ",userxattr,redirect_dir=on", EINVAL));
    CHECK_IF("volatile", takes("lowerdir=a,upperdir=c,workdir=other,volatile"));
    CHECK_IF("unknown", refuses(PLAIN ",unknown", EINVAL));
    CHECK_IF("nfs-export-off", takes(PLAIN ",nfs_export=off"));
    CHECK_IF("no-options", refuses("", EINVAL));
    CHECK_IF("no-lower", refuses("upperdir=u,workdir=w", EINVAL));
    CHECK_IF("no-work", refuses("lowerdir=a,upperdir=u", EINVAL));
    CHECK_IF("missing-lower", refuses("lowerdir=none,upperdir=u,workdir=w", ENOENT));
    CHECK_IF("missing-upper", refuses("lowerdir=a,upperdir=none,workdir=w", ENOENT));
    CHECK_IF("missing-work", refuses("lowerdir=a,upperdir=u,workdir=none", ENOENT));
    CHECK_IF("lower-is-file", refuses("lowerdir=a/file,upperdir=u,workdir=w", EINVAL));
    CHECK_IF("upper-is-file", refuses("lowerdir=b,upperdir=a/file,workdir=w", EINVAL));
    CHECK_IF("work-in-upper", refuses("lowerdir=a,upperdir=u,workdir=u/in", EINVAL));
    CHECK_IF("upper-in-work", refuses("lowerdir=a,upperdir=w/in,workdir=w", EINVAL));
    CHECK_IF("work-is-upper", refuses("lowerdir=a,upperdir=u,workdir=u", EINVAL));
    CHECK_IF("lower-twice", refuses("lowerdir=a:a,upperdir=u,workdir=w", ELOOP));
    CHECK_IF("lower-in-lower", refuses("lowerdir=b:b/in,upperdir=u,workdir=w", ELOOP));
    CHECK_IF("lower-is-upper", refuses("lowerdir=a:u,upperdir=u,workdir=w", ELOOP));
    CHECK_IF("lower-in-upper", refuses("lowerdir=u/in,upperdir=u,workdir=w", ELOOP));
    CHECK_IF("empty-lower", refuses("lowerdir=a:,upperdir=u,workdir=w", EINVAL));
    CHECK_IF("volatile-only-once", refuses("lowerdir=a,upperdir=c,workdir=other", EINVAL));
    CHECK_IF("volatile-not-again", refuses("lowerdir=a,upperdir=c,workdir=other,volatile", EINVAL));
    CHECK_IF("mounted-tmpfs", mount("none", "n", "tmpfs", 0, "") == 0 && mkdir("n/w", 0755) == 0 && mkdir("n/l", 0755) == 0);
    CHECK_IF("work-elsewhere", refuses("lowerdir=a,upperdir=u,workdir=n/w", EINVAL));
    CHECK_IF("read-only-upper", mount("none", "n", NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0 && mkdir("m2", 0755) == 0 &&
                                    refuses("lowerdir=a,upperdir=n/l,workdir=n/w", EINVAL));
    CHECK_IF("escaped-colon", overlay("lowerdir=with\\:colon,upperdir=u,workdir=w") == 0 && says("m/colon", "c") && umount("m") == 0);

    CHECK_IF("shows-layers", shows(PLAIN, "lowerdir=a:b,upperdir=u,workdir=w"));
    CHECK_IF("shows-redirect", shows(PLAIN ",redirect_dir=on", ",redirect_dir=on"));
    CHECK_IF("shows-no-redirect", !shows(PLAIN ",redirect_dir=off", ",redirect_dir"));
    CHECK_IF("shows-nofollow", shows(PLAIN ",redirect_dir=nofollow", ",redirect_dir=nofollow"));
    CHECK_IF("shows-read-only", shows("lowerdir=a:b", " ro,"));

    CHECK_IF("one-lower-alone", refuses("lowerdir=a", EINVAL));
    CHECK_IF("read-only", overlay("lowerdir=a:b") == 0 && has("m", "file in") && says("m/in/file", "b"));
    CHECK_IF("read-only-write", fails(open("m/file", O_WRONLY), EROFS));
    CHECK_IF("read-only-create", fails(open("m/new", O_CREAT | O_WRONLY, 0600), EROFS));
    CHECK_IF("read-only-chmod", fails(chmod("m/file", 0600), EROFS));
    CHECK_IF("read-only-unlink", fails(unlink("m/file"), EROFS));
    CHECK_IF("read-only-mkdir", fails(mkdir("m/d", 0700), EROFS));
    CHECK_IF("read-only-attribute", fails(setxattr("m/file", "user.x", "", 0, 0), EROFS));
    struct statfs status;
    CHECK_IF("statfs", statfs("m", &status) == 0 && status.f_type == OVERLAY_MAGIC && (status.f_flags & ST_RDONLY));
    CHECK_IF("busy", open("m/file", O_RDONLY) >= 0 && fails(umount("m"), EBUSY));
    syscall(SYS_close_range, 3, ~0U, 0);
    CHECK_IF("read-only-unmounted", umount("m") == 0);

    CHECK_IF("below", overlay(PLAIN) == 0 && mkdir("m/u4", 0755) == 0 && mkdir("m/w4", 0755) == 0 && close(open("m/above", O_CREAT | O_WRONLY, 0600)) == 0);
    struct statfs store;
    CHECK_IF("statfs-of-upper", statfs("m", &status) == 0 && statfs("u", &store) == 0 && status.f_blocks == store.f_blocks);
    CHECK_IF("on-overlay", mount("o", "m2", "overlay", 0, "lowerdir=m,upperdir=u2,workdir=w2") == 0);
    CHECK_IF("on-overlay-shows", has("m2", "above file in u4 w4") && says("m2/in/file", "b"));
    CHECK_IF("on-overlay-copies", appends("m2/in/file", "+") && says("u2/in/file", "b+") && says("m/in/file", "b"));
    CHECK_IF("on-overlay-unlinks", unlink("m2/above") == 0 && is_whiteout("u2/above") && exists("m/above"));
    CHECK_IF("too-deep", mkdir("m3", 0755) == 0 && mkdir("u3", 0755) == 0 && mkdir("w3", 0755) == 0 &&
                             fails(mount("o", "m3", "overlay", 0, "lowerdir=m2,upperdir=u3,workdir=w3"), EINVAL));
    CHECK_IF("upper-on-overlay", fails(mount("o", "m3", "overlay", 0, "lowerdir=b,upperdir=m/u4,workdir=m/w4"), EINVAL));
    CHECK_IF("lower-can-be-unmounted", umount("m") == 0 && has("m2", "file in u4 w4"));
    CHECK_IF("upper-unmounted", umount("m2") == 0);
    CHECK_IF("proc-below", fails(mount("o", "m3", "overlay", 0, "lowerdir=/proc,upperdir=u3,workdir=w3"), EINVAL));
    CHECK_IF("user-notes", overlay("lowerdir=b,upperdir=u3,workdir=w3,userxattr") == 0 && unlink("m/in/file") == 0 && rmdir("m/in") == 0 &&
                               mkdir("m/in", 0755) == 0 && attribute("u3/in", "user.overlay.opaque", "y"));
    CHECK_IF("user-notes-hidden", fails(getxattr("m/in", "user.overlay.opaque", NULL, 0), ENODATA));
    CHECK_IF("user-notes-unmounted", umount("m") == 0);
    char many[4000] = "lowerdir=";
    for (int i = 0; i < 128; i++) {
        char path[32];
        snprintf(path, sizeof path, "l%d", i);
        REQUIRE(mkdir(path, 0755) == 0);
        strcat(strcat(many, i ? ":" : ""), path);
        snprintf(path, sizeof path, "l%d/f%d", i, i);
        check_write_file(path, path);
        snprintf(path, sizeof path, "l%d/same", i);
        check_write_file(path, path);
    }
    CHECK_IF("many-layers", overlay(many) == 0);
    CHECK_IF("many-layers-lowest", says("m/f127", "l127/f127") && says("m/same", "l0/same"));
    CHECK_IF("many-layers-none", !exists("m/f128"));
    CHECK_IF("many-layers-listed", strstr(names("m"), "f98 f99 same") != NULL);
    CHECK_IF("many-layers-unmounted", umount("m") == 0);
    return 0;
}
