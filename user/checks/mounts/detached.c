// Trees of mounts that are nowhere: copies, what is in them, where they go, and their end. Who may not mount has nothing to compare.
#include "mount_calls.h"
#include <sys/socket.h>

static void copies(void)
{
    CHECK_MAY("made", make("a") || new_mount("a") || make("a/in") || new_mount("a/in") || make("a/in/deep") || make("a/plain"));
    CHECK_MAY("recursive-without-clone", fails(open_tree(AT_FDCWD, "a", PATH_RECURSIVE), EINVAL));
    CHECK_MAY("bad-flags", fails(open_tree(AT_FDCWD, "a", 2), EINVAL));
    CHECK_MAY("absent", fails(open_tree(AT_FDCWD, "absent", TREE_CLONE), ENOENT));
    CHECK_MAY("empty-path", fails(open_tree(AT_FDCWD, "", TREE_CLONE), ENOENT));
    int place = open_tree(AT_FDCWD, "a", TREE_CLOEXEC);
    CHECK_MAY("place-closes", fcntl(place, F_GETFD));
    CHECK_MAY("place-is-path", (fcntl(place, F_GETFL) & O_PATH) != 0);
    CHECK_MAY("place-shows", has_at(place, "in/deep"));
    int again = open_tree(place, "", PATH_EMPTY);
    CHECK_MAY("empty-path-shows", has_at(again, "in/deep"));
    close(again);
    close(place);
    int one = open_tree(AT_FDCWD, "a", TREE_CLONE);
    CHECK_MAY("one-closes-not", fcntl(one, F_GETFD));
    CHECK_MAY("one-shows", has_at(one, "plain") && has_at(one, "in") && !has_at(one, "in/deep"));
    int all = open_tree(AT_FDCWD, "a", TREE_CLONE | PATH_RECURSIVE);
    CHECK_MAY("all-shows", has_at(all, "in/deep"));
    CHECK_MAY("all-goes-up", has_at(all, "in/..") && has_at(all, "in/../plain"));
    CHECK_MAY("top-is-top", has_at(all, "../plain"));
    CHECK_MAY("written-through", mkdirat(all, "new", 0755) || !has("a/new"));
    CHECK_MAY("other-mount-same-files", has_at(one, "new"));
    CHECK_MAY("unmounted-there-not-here", umount("a/in") || !has_at(all, "in/deep"));
    CHECK_MAY("subtree", open_tree(AT_FDCWD, "a/plain", TREE_CLONE) >= 0);
    CHECK_MAY("move-to-absent", fails(move_mount(all, "", AT_FDCWD, "absent", FROM_EMPTY), ENOENT));
    CHECK_MAY("move-bad-flags", fails(move_mount(all, "", AT_FDCWD, "m", FROM_EMPTY | 0x400), EINVAL));
    CHECK_MAY("move-without-empty", fails(move_mount(all, "", AT_FDCWD, "m", 0), ENOENT));
    CHECK_MAY("move-inner", fails(move_mount(all, "in", AT_FDCWD, "m", 0), EINVAL));
    CHECK_MAY("move-no-root", fails(move_mount(all, "plain", AT_FDCWD, "m", 0), EINVAL));
    CHECK_MAY("move-on-file", (check_write_file("file", ""), fails(move_mount(all, "", AT_FDCWD, "file", FROM_EMPTY), EINVAL)));
    CHECK_MAY("moved", move_mount(all, "", AT_FDCWD, "m", FROM_EMPTY));
    CHECK_MAY("moved-shows", has("m/in/deep") && has("m/plain"));
    CHECK_MAY("moved-within-itself", fails(move_mount(all, "", AT_FDCWD, "m/plain", FROM_EMPTY), ELOOP));
    close(all);
    CHECK_MAY("moved-stays", has("m/in/deep"));
    CHECK_MAY("moved-unmounted", umount("m/in") || umount("m"));
    CHECK_MAY("to-descriptor", make("m/t"));
    int target = open("m/t", O_PATH);
    CHECK_MAY("moved-to-descriptor", move_mount(one, "", target, "", FROM_EMPTY | TO_EMPTY));
    CHECK_MAY("moved-to-descriptor-shows", has("m/t/plain"));
    close(target);
    close(one);
    CHECK_MAY("still-shows", has("m/t/plain"));
    CHECK_MAY("unmounted", umount("m/t"));
    CHECK_MAY("link-is-not-followed", symlink("m", "link") ? -2 : fails(move_mount(AT_FDCWD, "a", AT_FDCWD, "link", 0), EINVAL));
    CHECK_MAY("link-is-followed", move_mount(AT_FDCWD, "a", AT_FDCWD, "link", TO_SYMLINKS));
    CHECK_MAY("link-led-there", has("m/plain"));
    CHECK_MAY("back", move_mount(AT_FDCWD, "link", AT_FDCWD, "a", FROM_SYMLINKS));
    CHECK_MAY("unbindable", change("a", MS_UNBINDABLE) ? -2 : fails(open_tree(AT_FDCWD, "a", TREE_CLONE), EINVAL));
    CHECK_MAY("gone", umount2("a", MNT_DETACH));
}

static void ends(void)
{
    CHECK_MAY("ends-made", new_mount("a") || make("a/in") || new_mount("a/in") || make("a/in/deep"));
    int tree = open_tree(AT_FDCWD, "a", TREE_CLONE | PATH_RECURSIVE);
    int inside = openat(tree, "in/deep", O_RDONLY);
    CHECK_MAY("opened-inside", inside >= 0);
    close(tree);
    CHECK_MAY("inside-lives-on", mkdirat(inside, "child", 0755));
    CHECK_MAY("inside-is-the-same", has("a/in/deep/child"));
    close(inside);
    CHECK_MAY("not-busy", umount("a/in") || umount("a"));
    // What nobody else shows ends with its last descriptor.
    int own = new_tree();
    int second = dup(own);
    CHECK_MAY("own-made", mkdirat(own, "d", 0755));
    close(own);
    CHECK_MAY("second-has-it", has_at(second, "d"));
    CHECK_MAY("second-moves-it", move_mount(second, "", AT_FDCWD, "m", FROM_EMPTY));
    close(second);
    CHECK_MAY("second-moved-it", has("m/d"));
    CHECK_MAY("second-gone", umount("m"));
    // A copy in a message that nobody receives.
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    own = new_tree();
    char byte = 0;
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = { .bytes = { 0 } };
    struct iovec part = { &byte, 1 };
    struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes };
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &own, sizeof own);
    CHECK_MAY("sent", sendmsg(ends[0], &header, 0));
    close(own);
    close(ends[0]);
    close(ends[1]);
}

static void groups(void)
{
    CHECK_MAY("shared", new_mount("a") || change("a", MS_SHARED) || make("a/p"));
    int copy = open_tree(AT_FDCWD, "a", TREE_CLONE);
    CHECK_MAY("copy-hears-nothing", new_mount("a/p") || make("a/p/new") || has_at(copy, "p/new"));
    CHECK_MAY("copy-moved", move_mount(copy, "", AT_FDCWD, "m", FROM_EMPTY));
    CHECK_MAY("copy-is-peer", umount("a/p") || new_mount("a/p") || make("a/p/new") || !has("m/p/new"));
    close(copy);
    CHECK_MAY("from-shared", make("a/q") || new_mount("a/q") ? -2 : fails(move_mount(AT_FDCWD, "a/q", AT_FDCWD, "b", 0), EINVAL));
    int tree = new_tree();
    CHECK_MAY("tree-made", mkdirat(tree, "in-tree", 0755));
    CHECK_MAY("tree-to-shared", make("a/r") || move_mount(tree, "", AT_FDCWD, "a/r", FROM_EMPTY));
    CHECK_MAY("tree-in-peer", has("m/r/in-tree"));
    close(tree);
    CHECK_MAY("groups-gone", umount2("a", MNT_DETACH) || umount2("m", MNT_DETACH));

    CHECK_MAY("group-made", new_mount("a") || change("a", MS_SHARED) || make("a/p") || mount("a", "b", NULL, MS_BIND, NULL) || change("b", MS_PRIVATE));
    CHECK_MAY("group-set", move_mount(AT_FDCWD, "a", AT_FDCWD, "b", SET_GROUP));
    CHECK_MAY("group-is-heard", new_mount("a/p") || make("a/p/new") || !has("b/p/new"));
    CHECK_MAY("group-not-twice", fails(move_mount(AT_FDCWD, "a", AT_FDCWD, "b", SET_GROUP), EINVAL));
    CHECK_MAY("group-other-file-system", new_mount("m") ? -2 : fails(move_mount(AT_FDCWD, "a", AT_FDCWD, "m", SET_GROUP), EINVAL));
    CHECK_MAY("group-of-private", fails(move_mount(AT_FDCWD, "m", AT_FDCWD, "a", SET_GROUP), EINVAL));
    CHECK_MAY("group-of-no-mount", fails(move_mount(AT_FDCWD, "a/p/new", AT_FDCWD, "b", SET_GROUP), EINVAL));
    CHECK_MAY("all-gone", umount("m") || umount2("a", MNT_DETACH) || umount2("b", MNT_DETACH));
}

int main(void)
{
    begin_in_own_mount();
    REQUIRE(make("m") == 0 && make("b") == 0);
    if (may) {
        copies();
        ends();
        groups();
    }
    CHECK_CHILD("unprivileged", {
        if (may) {
            REQUIRE(setuid(1000) == 0);
            CHECK("unprivileged-clone", open_tree(AT_FDCWD, "/", TREE_CLONE));
            CHECK_TRUE("unprivileged-place", open_tree(AT_FDCWD, "/", 0) >= 0);
            CHECK("unprivileged-move", move_mount(AT_FDCWD, "/", AT_FDCWD, "/", 0));
        }
    });
    end_own_mount();
    return 0;
}
