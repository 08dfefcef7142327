// What programs ask about the network: devices by ioctl(2), rtnetlink, and the lists of procfs.
#include "../check.h"
#include "../inet.h"
#include <ifaddrs.h>
#include <net/if.h>

// Of the lines of a list, those that begin with this behind spaces.
static void show_lines(const char *name, const char *path, const char *start)
{
    char line[512];
    FILE *file = fopen(path, "r");
    if (!file) {
        check_line("%s: %s\n", name, check_errno_name(errno));
        return;
    }
    while (fgets(line, sizeof line, file)) {
        char *at = line + strspn(line, " ");
        line[strcspn(line, "\n")] = 0;
        if (strncmp(at, start, strlen(start)) == 0)
            check_line("%s: [%s]\n", name, line);
    }
    fclose(file);
}

// What a list of sockets says of the one with this port: addresses without ports, the state, how long the line is.
static void show_socket(const char *name, const char *path, int port)
{
    char line[512], want[8], local[64], remote[64], queues[64];
    int slot, state, found = 0;
    snprintf(want, sizeof want, ":%04X", port);
    FILE *file = fopen(path, "r");
    REQUIRE(file && fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, " %d: %63s %63s %x %63s", &slot, local, remote, &state, queues) != 5 || strcmp(strchr(local, ':'), want) != 0)
            continue;
        *strchr(local, ':') = 0;
        char *other = strchr(remote, ':');
        int has_port = strcmp(other, ":0000") != 0;
        *other = 0;
        check_line("%s: %s %s%s state %d queues %s%s\n", name, local, remote, has_port ? " port" : "", state, queues, strlen(line) == 150 ? " padded" : "");
        found++;
    }
    fclose(file);
    check_line("%s-count: %d\n", name, found);
}

static void show_setting(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "/proc/sys/net/%s", name);
    check_line("%s: %s\n", name, check_read_file(path));
}

int main(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq request = { 0 };
    strcpy(request.ifr_name, "lo");
    INET("flags", ioctl(fd, SIOCGIFFLAGS, &request));
    check_line("flags-are: %#x\n", request.ifr_flags);
    INET("index", ioctl(fd, SIOCGIFINDEX, &request) ? -1 : request.ifr_ifindex);
    INET("mtu", ioctl(fd, SIOCGIFMTU, &request) ? -1 : request.ifr_mtu);
    INET("hardware", ioctl(fd, SIOCGIFHWADDR, &request) ? -1 : request.ifr_hwaddr.sa_family);
    INET("address", ioctl(fd, SIOCGIFADDR, &request));
    CHECK_STR("address-is", inet_ntoa(((struct sockaddr_in *)&request.ifr_addr)->sin_addr));
    INET("netmask", ioctl(fd, SIOCGIFNETMASK, &request));
    CHECK_STR("netmask-is", inet_ntoa(((struct sockaddr_in *)&request.ifr_addr)->sin_addr));
    INET("broadcast", ioctl(fd, SIOCGIFBRDADDR, &request));
    CHECK_STR("broadcast-is", inet_ntoa(((struct sockaddr_in *)&request.ifr_addr)->sin_addr));
    INET("queue", ioctl(fd, SIOCGIFTXQLEN, &request) ? -1 : request.ifr_qlen);
    request.ifr_ifindex = 1;
    INET("name", ioctl(fd, SIOCGIFNAME, &request));
    CHECK_STR("name-is", request.ifr_name);
    request.ifr_ifindex = 4711;
    INET("no-such-index", ioctl(fd, SIOCGIFNAME, &request) == -1 ? errno == ENODEV : -2);
    strcpy(request.ifr_name, "nonesuch");
    INET("no-such-name", ioctl(fd, SIOCGIFFLAGS, &request) == -1 ? errno == ENODEV : -2);
    INET("unknown-ioctl", ioctl(fd, 0x4711, &request) == -1 ? errno == ENOTTY : -2);
    char buffer[4096];
    struct ifconf list = { sizeof buffer, { buffer } };
    INET("list", ioctl(fd, SIOCGIFCONF, &list));
    int has_loopback = 0;
    for (struct ifreq *one = (struct ifreq *)buffer; (char *)one < buffer + list.ifc_len; one++)
        has_loopback |= strcmp(one->ifr_name, "lo") == 0 && ((struct sockaddr_in *)&one->ifr_addr)->sin_addr.s_addr == htonl(INADDR_LOOPBACK);
    INET("list-has-loopback", has_loopback);
    INET("name-to-index", if_nametoindex("lo"));
    INET("no-name-to-index", if_nametoindex("nonesuch"));

    // rtnetlink, by the C library.
    struct ifaddrs *all;
    INET("getifaddrs", getifaddrs(&all));
    for (struct ifaddrs *one = all; one; one = one->ifa_next) {
        if (strcmp(one->ifa_name, "lo") != 0 || !one->ifa_addr)
            continue;
        char ip[64] = "-", mask[64] = "-";
        int family = one->ifa_addr->sa_family;
        if (family == AF_INET || family == AF_INET6) {
            inet_ntop(family, family == AF_INET ? (void *)&((struct sockaddr_in *)one->ifa_addr)->sin_addr : (void *)&((struct sockaddr_in6 *)one->ifa_addr)->sin6_addr, ip, sizeof ip);
            inet_ntop(family, family == AF_INET ? (void *)&((struct sockaddr_in *)one->ifa_netmask)->sin_addr : (void *)&((struct sockaddr_in6 *)one->ifa_netmask)->sin6_addr, mask, sizeof mask);
        }
        check_line("interface: %s family %d %s %s flags %#x\n", one->ifa_name, family, ip, mask, one->ifa_flags);
    }
    freeifaddrs(all);
    // And by hand.
    int netlink = socket(AF_NETLINK, SOCK_RAW, 0);
    INET("netlink", netlink >= 0);
    struct { unsigned short family, pad; unsigned pid, groups; } name = { AF_NETLINK, 0, 0, 0 };
    socklen_t len = sizeof name;
    INET("netlink-bind", bind(netlink, (struct sockaddr *)&name, sizeof name));
    INET("netlink-name", getsockname(netlink, (struct sockaddr *)&name, &len));
    check_line("netlink-named: %d bytes, family %d, %s\n", (int)len, name.family, name.pid ? "a port" : "no port");
    INET("netlink-nothing", recv(netlink, buffer, sizeof buffer, MSG_DONTWAIT));
    struct { unsigned len; unsigned short type, flags; unsigned seq, pid; unsigned char body[16]; } ask = { sizeof ask, 18, 1, 42, 0, { 0 } };
    memcpy(ask.body + 4, &(int){ 1 }, 4);
    INET("netlink-one", send(netlink, &ask, sizeof ask, 0) == sizeof ask);
    REQUIRE(recv(netlink, buffer, sizeof buffer, 0) > 32);
    unsigned short *kind = (unsigned short *)(buffer + 4);
    check_line("netlink-answer: type %d flags %d sequence %d device %d\n", kind[0], kind[1], *(int *)(buffer + 8), *(int *)(buffer + 20));
    memcpy(ask.body + 4, &(int){ 4711 }, 4);
    REQUIRE(send(netlink, &ask, sizeof ask, 0) == sizeof ask);
    REQUIRE(recv(netlink, buffer, sizeof buffer, 0) > 16);
    check_line("netlink-none: type %d, error %d\n", kind[0], *(int *)(buffer + 16));
    ask.type = 22;
    ask.flags = 0x301;
    REQUIRE(send(netlink, &ask, sizeof ask, 0) == sizeof ask);
    int ended = 0, addresses = 0;
    while (!ended) {
        ssize_t got = recv(netlink, buffer, sizeof buffer, 0);
        REQUIRE(got > 0);
        for (char *at = buffer; at < buffer + got; at += (*(unsigned *)at + 3) & ~3) {
            ended |= *(unsigned short *)(at + 4) == 3;
            addresses += *(unsigned short *)(at + 4) == 20 && *(int *)(at + 20) == 1;
        }
    }
    INET("netlink-addresses", addresses);
    INET("netlink-protocol", socket(AF_NETLINK, SOCK_RAW, 99));
    INET("netlink-stream", socket(AF_NETLINK, SOCK_STREAM, 0));

    static const char *files[] = { "mtu", "address", "type", "flags", "ifindex", "operstate", "addr_len" };
    for (unsigned i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[64];
        snprintf(path, sizeof path, "/sys/class/net/lo/%s", files[i]);
        check_line("lo-%s: %s\n", files[i], check_read_file(path));
    }
    // Lists.
    int listener = listener4(7);
    show_socket("listener", "/proc/net/tcp", port_of(listener));
    int client = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(connect4(client, "127.0.0.1", port_of(listener)) == 0);
    show_socket("client", "/proc/net/tcp", port_of(client));
    int server = accept(listener, NULL, NULL);
    REQUIRE(send(client, "waiting", 7, 0) == 7);
    int six = socket(AF_INET6, SOCK_STREAM, 0);
    REQUIRE(bind6(six, "::1", 0) == 0);
    show_socket("bound-only", "/proc/net/tcp6", port_of(six));
    REQUIRE(listen(six, 1) == 0);
    show_socket("six", "/proc/net/tcp6", port_of(six));
    REQUIRE(bind4(fd, "127.0.0.1", 0) == 0);
    show_socket("udp", "/proc/net/udp", port_of(fd));
    show_socket("udp-self", "/proc/self/net/udp", port_of(fd));
    int udp6 = socket(AF_INET6, SOCK_DGRAM, 0);
    REQUIRE(bind6(udp6, "::", 0) == 0);
    show_socket("udp6", "/proc/net/udp6", port_of(udp6));
    // Whose it is.
    char link[64], path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", listener);
    ssize_t length = readlink(path, link, sizeof link - 1);
    link[length > 0 ? length : 0] = 0;
    unsigned long inode = 0, found = 0;
    sscanf(link, "socket:[%lu]", &inode);
    FILE *file = fopen("/proc/net/tcp", "r");
    char line[256];
    while (file && fgets(line, sizeof line, file)) {
        unsigned long number = 0;
        found |= sscanf(line, " %*d: %*s %*s %*x %*s %*s %*s %*d %*d %lu", &number) == 1 && number == inode;
    }
    CHECK_TRUE("inode-found", inode != 0 && found);
    show_lines("tcp-head", "/proc/net/tcp", "sl");
    show_lines("tcp6-head", "/proc/net/tcp6", "sl");
    show_lines("udp-head", "/proc/net/udp", "sl");
    show_lines("udp6-head", "/proc/net/udp6", "sl");
    show_lines("raw-head", "/proc/net/raw", "sl");
    show_lines("dev-head", "/proc/net/dev", "Inter");
    show_lines("dev-head", "/proc/net/dev", "face");
    show_lines("if_inet6", "/proc/net/if_inet6", "00000000000000000000000000000001");
    show_lines("route-head", "/proc/net/route", "Iface");
    show_lines("arp-head", "/proc/net/arp", "IP");
    static const char *settings[] = { "core/somaxconn", "core/wmem_default", "ipv4/ip_local_port_range", "ipv4/ip_unprivileged_port_start", "ipv4/ip_default_ttl", "ipv4/tcp_fin_timeout", "ipv4/tcp_keepalive_time", "ipv6/bindv6only" };
    for (unsigned i = 0; i < sizeof settings / sizeof settings[0]; i++)
        show_setting(settings[i]);
    close(server);
    return 0;
}
