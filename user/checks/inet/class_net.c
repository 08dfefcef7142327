// What /sys/class/net tells of the loopback device, and that it has all devices: Linux's Documentation/ABI/testing/sysfs-class-net.
#include "../check.h"
#include "../inet.h"
#include <dirent.h>

// What a kernel has only with some options (phys_*) is left out.
static void show_file(const char *name)
{
    char path[128], text[256];
    struct stat stat;
    snprintf(path, sizeof path, "/sys/class/net/lo/%s", name);
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &stat)) {
        check_line("%s: not there\n", name);
        return;
    }
    errno = 0;
    ssize_t len = read(fd, text, sizeof text - 1);
    text[len > 0 ? len : 0] = 0;
    for (char *at = text; (at = strchr(at, '\n'));)
        *at = at[1] ? ',' : 0;
    check_line("%s: %d bytes, %s\n", name, (int)stat.st_size, len < 0 ? errno == EOPNOTSUPP ? "EOPNOTSUPP" : inet_error(errno) : text);
    close(fd);
}

int main(void)
{
    static const char *files[] = { "addr_assign_type", "addr_len", "address", "broadcast", "carrier", "carrier_changes", "carrier_down_count", "carrier_up_count", "dev_id", "dev_port", "dormant", "duplex", "speed", "flags", "ifindex", "iflink", "link_mode", "mtu", "name_assign_type", "netdev_group", "operstate", "proto_down", "testing", "tx_queue_len", "type", "uevent" };
    for (unsigned i = 0; i < sizeof files / sizeof files[0]; i++)
        show_file(files[i]);
    static const char *counted[] = { "collisions", "multicast", "rx_bytes", "rx_compressed", "rx_crc_errors", "rx_dropped", "rx_errors", "rx_fifo_errors", "rx_frame_errors", "rx_length_errors", "rx_missed_errors", "rx_nohandler", "rx_over_errors", "rx_packets", "tx_aborted_errors", "tx_bytes", "tx_carrier_errors", "tx_compressed", "tx_dropped", "tx_errors", "tx_fifo_errors", "tx_heartbeat_errors", "tx_packets", "tx_window_errors" };
    for (unsigned i = 0; i < sizeof counted / sizeof counted[0]; i++) {
        char path[128], text[64];
        snprintf(path, sizeof path, "/sys/class/net/lo/statistics/%s", counted[i]);
        int fd = open(path, O_RDONLY);
        ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text);
        CHECK_TRUE(counted[i], len > 1 && text[len - 1] == '\n' && strspn(text, "0123456789") == (size_t)len - 1);
        close(fd);
    }
    char target[256];
    ssize_t len = readlink("/sys/class/net/lo", target, sizeof target - 1);
    check_line("link: %.*s\n", (int)len, target);
    len = readlink("/sys/class/net/lo/subsystem", target, sizeof target - 1);
    check_line("subsystem: %.*s\n", (int)len, target);
    // Each device that sockets know is there with its number, and no other.
    DIR *all = opendir("/sys/class/net");
    REQUIRE(all);
    int right = 1, count = 0, sockets = 0;
    for (struct dirent *one; (one = readdir(all));) {
        if (one->d_name[0] == '.')
            continue;
        char path[300];
        snprintf(path, sizeof path, "/sys/class/net/%s/ifindex", one->d_name);
        right &= atoi(check_read_file(path)) == (int)if_nametoindex(one->d_name);
        count++;
    }
    struct if_nameindex *names = if_nameindex();
    REQUIRE(names);
    while (names[sockets].if_index)
        sockets++;
    CHECK_TRUE("numbers", right);
    CHECK_TRUE("all", count == sockets && count > 0);
    INET("write", open("/sys/class/net/lo/address", O_WRONLY));
    return 0;
}
