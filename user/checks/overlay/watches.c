// inotify(7) in an overlay: files of all layers are watched, also while they are copied to the upper one.
#include "../inotify/inotify.h"
#include "overlay.h"

int main(void)
{
    layers();
    REQUIRE(mkdir("b/d", 0755) == 0);
    check_write_file("b/d/low", "low");
    check_write_file("b/d/other", "low");
    mount_layers(PLAIN);
    if (!may)
        return 0;
    start_watching();
    watch("m/d", IN_ALL_EVENTS);
    watch("m/d/low", IN_ALL_EVENTS);
    int fd = open("m/d/low", O_RDONLY);
    REQUIRE(read(fd, &(char){ 0 }, 1) == 1 && close(fd) == 0);
    show("read of a lower file");
    REQUIRE(appends("m/d/low", "er"));
    show("written, and so copied");
    REQUIRE(appends("m/d/low", "er"));
    show("written again");
    REQUIRE(chmod("m/d/other", 0600) == 0);
    show("chmod of another");
    REQUIRE(link("m/d/low", "m/d/hard") == 0 && unlink("m/d/hard") == 0);
    show("a name more and less");
    check_write_file("m/d/new", "new");
    show("a new file");
    REQUIRE(rename("m/d/new", "m/d/newer") == 0);
    show("moved");
    REQUIRE(rename("m/d/newer", "m/d/other") == 0);
    show("over a lower one");
    REQUIRE(unlink("m/d/low") == 0);
    show("the last name of what was copied");
    REQUIRE(mkdir("m/d/sub", 0755) == 0 && rmdir("m/d/sub") == 0);
    show("a directory");
    REQUIRE(unlink("m/d/other") == 0 && rmdir("m/d") == 0);
    show("rmdir of what covers a lower one");
    return 0;
}
