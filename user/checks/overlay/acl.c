// Access control lists through an overlay: of a file in a lower layer, of its copy, and of what is made in a directory that has a default one.
#include "../acl.h"
#include "overlay.h"

int main(void)
{
    umask(022);
    REQUIRE(chmod(".", 0755) == 0);
    layers();
    check_write_file("b/file", "x");
    REQUIRE(chmod("b/file", 0600) == 0 && mkdir("b/directory", 0755) == 0);
    CHECK("below", SET("b/file", ACCESS, {OWNER, 6, NONE}, {USER, 4, 1000}, {OWNING_GROUP, 0, NONE}, {MASK, 7, NONE}, {OTHER, 0, NONE}));
    CHECK("default-below", SET("b/directory", DEFAULT, {OWNER, 7, NONE}, {USER, 6, 1000}, {OWNING_GROUP, 5, NONE}, {MASK, 7, NONE}, {OTHER, 0, NONE}));
    mount_layers(PLAIN);
    show("file", "m/file");
    show_rights("user", "m/file", 1000, 1, 0);
    show_rights("other", "m/file", 1001, 1, 0);
    CHECK("chmod", chmod("m/file", 0640));
    show("copy", "m/file");
    show("upper", "u/file");
    show("lower-still", "b/file");
    show_rights("copy-user", "m/file", 1000, 1, 0);
    CHECK("set", SET("m/file", ACCESS, {OWNER, 6, NONE}, {USER, 6, 1001}, {OWNING_GROUP, 0, NONE}, {MASK, 6, NONE}, {OTHER, 0, NONE}));
    show("set", "m/file");
    show_rights("set-user", "m/file", 1001, 1, 0);
    show_rights("set-other", "m/file", 1000, 1, 0);
    REQUIRE(mkdir("m/directory/inner", 0777) == 0 && close(open("m/directory/new", O_CREAT | O_RDWR, 0666)) == 0);
    show("inner", "m/directory/inner");
    show("new", "m/directory/new");
    show_rights("new-user", "m/directory/new", 1000, 1, 0);
    CHECK("removed", removexattr("m/file", ACCESS));
    show("removed", "m/file");
    // In the place of a whiteout.
    REQUIRE(unlink("m/directory/new") == 0);
    check_write_file("b/directory/hidden", "x");
    REQUIRE(close(open("m/directory/new", O_CREAT | O_RDWR, 0660)) == 0);
    show("new-again", "m/directory/new");
    CHECK_IF("unmounted", umount("m") == 0);
    return 0;
}
