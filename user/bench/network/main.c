// What sockets cost on the loopback device: one static program that is process 1 on Linux and on Ebb.
//
// What counts stands between two marks, which QEMU's plugin knows. For each row a line is printed: `row<TAB>operations`, or what was measured where instructions say nothing.
// Which rows there are the file /rows says. Those of servers need a disk with Debian's root file system.
#include "network.h"
#include <sys/resource.h>

static const struct row *const tables[] = { small_rows, stream_rows, datagram_rows, connection_rows, server_rows };

int main(int argc, char **argv)
{
    if (getpid() != 1) {
        fprintf(stderr, "bench: this is process 1 of a machine that `ebb-bench network` makes\n");
        return 1;
    }
    become_init();
    choose(argc, argv);
    struct rlimit descriptors = { 65536, 65536 };
    must(setrlimit(RLIMIT_NOFILE, &descriptors), "setrlimit");
    mkdir(MEMORY, 01777);
    must(mount("tmpfs", MEMORY, "tmpfs", 0, NULL), "mount of a tmpfs");
    bring_loopback_up();
    mount_servers();
    for (size_t table = 0; table < sizeof tables / sizeof tables[0]; table++)
        for (const struct row *row = tables[table]; row->name; row++)
            if (chosen(row->name)) {
                printf("%s\t%ld\n", row->name, row->run());
                fflush(stdout);
            }
    done();
}
