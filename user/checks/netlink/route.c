// What programs ask and change by rtnetlink(7), and how they hear of changes.
#include "../check.h"
#include "../netlink.h"
#include <ifaddrs.h>

#define OWN "10.98.76.54"

static struct request request;

static void address(int type, int flags, int index, int len)
{
    struct ifaddrmsg *head = begin(&request, type, flags | NLM_F_ACK, sizeof *head);
    head->ifa_family = AF_INET;
    head->ifa_prefixlen = len;
    head->ifa_index = index;
    unsigned ip = inet_addr(OWN);
    add(&request, IFA_LOCAL, &ip, 4);
    add(&request, IFA_ADDRESS, &ip, 4);
}

static void show_changed(const char *name, int fd)
{
    ask(fd, &request);
    show_outcome(name, fd);
}

// Whether the loopback device has the address.
static int has_own(void)
{
    struct ifaddrs *all;
    int has = 0;
    REQUIRE(getifaddrs(&all) == 0);
    for (struct ifaddrs *one = all; one; one = one->ifa_next)
        has |= one->ifa_addr && one->ifa_addr->sa_family == AF_INET && strcmp(one->ifa_name, "lo") == 0
            && ((struct sockaddr_in *)one->ifa_addr)->sin_addr.s_addr == inet_addr(OWN);
    freeifaddrs(all);
    return has;
}

// The next notice of a type about the address.
static void show_notice(const char *name, int fd, int type)
{
    char buffer[8192];
    for (;;) {
        struct sockaddr_nl from;
        socklen_t size = sizeof from;
        ssize_t got = recvfrom(fd, buffer, sizeof buffer, 0, (struct sockaddr *)&from, &size);
        REQUIRE(got > 0);
        struct nlmsghdr *message = (struct nlmsghdr *)buffer;
        struct ifaddrmsg *head = NLMSG_DATA(message);
        struct rtattr *own = find(message, sizeof *head, IFA_LOCAL);
        if (message->nlmsg_type != type || !own || *(unsigned *)RTA_DATA(own) != inet_addr(OWN))
            continue;
        check_line("%s: device %d, %d bits, from %d to group %#x\n", name, head->ifa_index, head->ifa_prefixlen, (int)from.nl_pid, from.nl_groups);
        return;
    }
}

// Asks for the route to an address.
static void show_route(const char *name, int fd, const char *to)
{
    char buffer[8192];
    struct rtmsg *head = begin(&request, RTM_GETROUTE, 0, sizeof *head);
    unsigned ip = inet_addr(to);
    head->rtm_family = AF_INET;
    head->rtm_dst_len = 32;
    add(&request, RTA_DST, &ip, 4);
    ask(fd, &request);
    REQUIRE(recv(fd, buffer, sizeof buffer, 0) > 0);
    struct nlmsghdr *message = (struct nlmsghdr *)buffer;
    if (message->nlmsg_type == NLMSG_ERROR) {
        check_line("%s: %s\n", name, inet_error(-*(int *)NLMSG_DATA(message)));
        return;
    }
    head = NLMSG_DATA(message);
    struct rtattr *device = find(message, sizeof *head, RTA_OIF), *source = find(message, sizeof *head, RTA_PREFSRC);
    char from[64] = "-";
    if (source)
        inet_ntop(AF_INET, RTA_DATA(source), from, sizeof from);
    check_line("%s: type %d table %d device %d source %s\n", name, head->rtm_type, head->rtm_table, device ? *(int *)RTA_DATA(device) : 0, from);
}

int main(void)
{
    int fd = netlink(NETLINK_ROUTE);
    // Options.
    INET("ext-ack", set_option(fd, SOL_NETLINK, NETLINK_EXT_ACK, 1));
    INET("cap-ack", set_option(fd, SOL_NETLINK, NETLINK_CAP_ACK, 1));
    INET("strict", set_option(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, 1));
    INET("ext-ack-is", get_option(fd, SOL_NETLINK, NETLINK_EXT_ACK));
    INET("unknown-option", set_option(fd, SOL_NETLINK, 99, 1));
    INET("join-none", set_option(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, 0));
    INET("join-too-many", set_option(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, 1000));
    // Ports.
    struct sockaddr_nl name = { .nl_family = AF_NETLINK }, other = name;
    socklen_t size = sizeof name;
    INET("bind", bind(fd, (struct sockaddr *)&name, sizeof name));
    REQUIRE(getsockname(fd, (struct sockaddr *)&name, &size) == 0);
    CHECK_TRUE("port-is-pid", name.nl_pid == (unsigned)getpid());
    int second = netlink(NETLINK_ROUTE);
    INET("port-in-use", bind(second, (struct sockaddr *)&name, sizeof name));
    INET("bind-second", bind(second, (struct sockaddr *)&other, sizeof other));
    INET("bind-again", bind(second, (struct sockaddr *)&name, sizeof name));
    close(second);
    second = netlink(NETLINK_SOCK_DIAG);
    INET("port-of-another-protocol", bind(second, (struct sockaddr *)&name, sizeof name));
    close(second);
    // What is wrong.
    begin(&request, RTM_NEWADDR, NLM_F_ACK, 4);
    show_changed("short", fd);
    begin(&request, 4711, NLM_F_ACK, 16);
    show_changed("unknown-kind", fd);
    address(RTM_NEWADDR, NLM_F_CREATE, 4711, 32);
    show_changed("no-such-device", fd);
    address(RTM_NEWADDR, NLM_F_CREATE, 1, 33);
    show_changed("too-long", fd);
    address(RTM_DELADDR, 0, 1, 32);
    show_changed("not-there", fd);
    // An address comes and goes.
    int listener = netlink(NETLINK_ROUTE);
    REQUIRE(bind(listener, (struct sockaddr *)&(struct sockaddr_nl){ .nl_family = AF_NETLINK }, sizeof name) == 0);
    INET("join", set_option(listener, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, RTNLGRP_IPV4_IFADDR));
    size = sizeof name;
    REQUIRE(getsockname(listener, (struct sockaddr *)&name, &size) == 0);
    check_line("groups: %#x\n", name.nl_groups);
    CHECK_TRUE("before", has_own());
    address(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, 1, 32);
    show_changed("add", fd);
    CHECK_TRUE("there", has_own());
    show_notice("notice", listener, RTM_NEWADDR);
    show_route("route-to-it", fd, OWN);
    show_route("route-to-loopback", fd, "127.0.0.1");
    int socket_there = socket(AF_INET, SOCK_DGRAM, 0);
    INET("bind-there", bind4(socket_there, OWN, 0));
    int client = socket(AF_INET, SOCK_DGRAM, 0);
    INET("connect-there", connect4(client, OWN, port_of(socket_there)));
    show_name("client", client);
    INET("send-there", send(client, "x", 1, 0));
    char byte;
    INET("receive-there", recv(socket_there, &byte, 1, 0));
    close(socket_there);
    close(client);
    // The words of the error, too.
    address(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, 1, 32);
    ask(fd, &request);
    char buffer[8192];
    REQUIRE(recv(fd, buffer, sizeof buffer, 0) > 0);
    struct nlmsghdr *message = (struct nlmsghdr *)buffer;
    struct rtattr *text = (struct rtattr *)((char *)message + NLMSG_LENGTH(sizeof(struct nlmsgerr)));
    check_line("twice: type %d flags %#x error %d, %s\n", message->nlmsg_type, message->nlmsg_flags, ((struct nlmsgerr *)NLMSG_DATA(message))->error, (char *)RTA_DATA(text));
    address(RTM_DELADDR, 0, 1, 32);
    show_changed("remove", fd);
    CHECK_TRUE("after", has_own());
    show_notice("notice-gone", listener, RTM_DELADDR);
    INET("leave", set_option(listener, SOL_NETLINK, NETLINK_DROP_MEMBERSHIP, RTNLGRP_IPV4_IFADDR));
    // Routes.
    struct rtmsg *route = begin(&request, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_ACK, sizeof *route);
    unsigned ip = inet_addr("10.1.2.3");
    *route = (struct rtmsg){ .rtm_family = AF_INET, .rtm_dst_len = 24, .rtm_table = RT_TABLE_MAIN, .rtm_type = RTN_UNICAST };
    add(&request, RTA_DST, &ip, 4);
    add(&request, RTA_OIF, &(int){ 1 }, 4);
    show_changed("route-bits-of-host", fd);
    route = begin(&request, RTM_DELROUTE, NLM_F_ACK, sizeof *route);
    *route = (struct rtmsg){ .rtm_family = AF_INET, .rtm_dst_len = 32, .rtm_table = RT_TABLE_MAIN, .rtm_scope = RT_SCOPE_NOWHERE };
    add(&request, RTA_DST, &ip, 4);
    show_changed("route-not-there", fd);
    // Devices.
    struct ifinfomsg *link = begin(&request, RTM_NEWLINK, NLM_F_ACK, sizeof *link);
    *link = (struct ifinfomsg){ .ifi_index = 1, .ifi_flags = IFF_UP, .ifi_change = IFF_UP };
    show_changed("up", fd);
    link = begin(&request, RTM_SETLINK, NLM_F_ACK, sizeof *link);
    link->ifi_index = 4711;
    show_changed("set-none", fd);
    // Only an administrator changes anything; all may ask.
    CHECK_CHILD("ordinary-user", {
        REQUIRE(setgid(65534) == 0 && setuid(65534) == 0);
        int own = netlink(NETLINK_ROUTE);
        address(RTM_NEWADDR, NLM_F_CREATE, 1, 32);
        show_changed("ordinary-add", own);
        link = begin(&request, RTM_NEWLINK, NLM_F_ACK, sizeof *link);
        link->ifi_index = 1;
        show_changed("ordinary-link", own);
        show_route("ordinary-route", own, "127.0.0.1");
        INET("ordinary-join", set_option(own, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, RTNLGRP_LINK));
        struct ifreq ifreq = { .ifr_name = "lo" };
        int datagrams = socket(AF_INET, SOCK_DGRAM, 0);
        INET("ordinary-ioctl", ioctl(datagrams, SIOCSIFMTU, &ifreq));
    });
    // Rules.
    begin(&request, RTM_GETRULE, NLM_F_DUMP, sizeof(struct rtmsg));
    request.body[0] = AF_INET;
    ask(fd, &request);
    int ended = 0, rules = 0;
    while (!ended) {
        ssize_t got = recv(fd, buffer, sizeof buffer, 0);
        REQUIRE(got > 0);
        for (message = (struct nlmsghdr *)buffer; NLMSG_OK(message, got); message = NLMSG_NEXT(message, got)) {
            ended |= message->nlmsg_type == NLMSG_DONE;
            rules += message->nlmsg_type == RTM_NEWRULE;
        }
    }
    CHECK_TRUE("rules", rules >= 3);
    // Two dumps at once.
    begin(&request, RTM_GETLINK, NLM_F_DUMP, sizeof(struct ifinfomsg));
    ask(fd, &request);
    struct pollfd ready = { fd, POLLIN, 0 };
    INET("dump-ready", poll(&ready, 1, -1));
    // Other protocols.
    int generic = netlink(NETLINK_GENERIC);
    struct { unsigned char command, version; unsigned short reserved; } *family = begin(&request, 16, 0, 4);
    family->command = 3;
    add(&request, 2, "nlctrl", 7);
    ask(generic, &request);
    ssize_t got = recv(generic, buffer, sizeof buffer, 0);
    REQUIRE(got > 0);
    message = (struct nlmsghdr *)buffer;
    struct rtattr *id = find(message, 4, 1);
    check_line("nlctrl: type %d id %d name %s\n", message->nlmsg_type, id ? *(unsigned short *)RTA_DATA(id) : -1, (char *)RTA_DATA(find(message, 4, 2)));
    family = begin(&request, 16, 0, 4);
    family->command = 3;
    add(&request, 2, "nonesuch", 9);
    ask(generic, &request);
    show_outcome("no-such-family", generic);
    int events = netlink(NETLINK_KOBJECT_UEVENT);
    struct sockaddr_nl all = { .nl_family = AF_NETLINK, .nl_groups = 1 };
    INET("uevent-bind", bind(events, (struct sockaddr *)&all, sizeof all));
    INET("uevent-nothing", recv(events, buffer, sizeof buffer, MSG_DONTWAIT));
    INET("no-protocol", socket(AF_NETLINK, SOCK_RAW, 20));
    return 0;
}
