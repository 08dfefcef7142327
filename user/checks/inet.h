// What the checks of internet sockets share.
#ifndef EBB_INET_H
#define EBB_INET_H
#ifndef SOL_RAW
#define SOL_RAW 255
#endif
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

// The numbers of the errors that only sockets have.
static inline const char *inet_error(int error)
{
    switch (error) {
    case EADDRNOTAVAIL: return "EADDRNOTAVAIL";
    case ENETUNREACH: return "ENETUNREACH";
    case EHOSTUNREACH: return "EHOSTUNREACH";
    case ECONNABORTED: return "ECONNABORTED";
    case EPROTONOSUPPORT: return "EPROTONOSUPPORT";
    case ESOCKTNOSUPPORT: return "ESOCKTNOSUPPORT";
    case ENOPROTOOPT: return "ENOPROTOOPT";
    case ENOBUFS: return "ENOBUFS";
    default: return check_errno_name(error);
    }
}

// Prints the value of an integer expression, with the names of the errors of sockets.
#define INET(name, expr)                                                       \
    do {                                                                       \
        errno = 0;                                                             \
        long inet_value = (long)(expr);                                        \
        if (inet_value == -1 && errno)                                         \
            check_line("%s: -1 %s\n", name, inet_error(errno));                \
        else                                                                   \
            check_line("%s: %ld\n", name, inet_value);                         \
    } while (0)

static inline struct sockaddr_in v4(const char *ip, int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    REQUIRE(inet_pton(AF_INET, ip, &address.sin_addr) == 1);
    return address;
}

static inline struct sockaddr_in6 v6(const char *ip, int port)
{
    struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    REQUIRE(inet_pton(AF_INET6, ip, &address.sin6_addr) == 1);
    return address;
}

static inline int bind4(int fd, const char *ip, int port)
{
    struct sockaddr_in address = v4(ip, port);
    return bind(fd, (struct sockaddr *)&address, sizeof address);
}

static inline int bind6(int fd, const char *ip, int port)
{
    struct sockaddr_in6 address = v6(ip, port);
    return bind(fd, (struct sockaddr *)&address, sizeof address);
}

static inline int connect4(int fd, const char *ip, int port)
{
    struct sockaddr_in address = v4(ip, port);
    return connect(fd, (struct sockaddr *)&address, sizeof address);
}

static inline int connect6(int fd, const char *ip, int port)
{
    struct sockaddr_in6 address = v6(ip, port);
    return connect(fd, (struct sockaddr *)&address, sizeof address);
}

// The port of a socket of either family.
static inline int port_of(int fd)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    REQUIRE(getsockname(fd, (struct sockaddr *)&address, &len) == 0);
    return ntohs(address.ss_family == AF_INET ? ((struct sockaddr_in *)&address)->sin_port : ((struct sockaddr_in6 *)&address)->sin6_port);
}

// An address without its port, which differs from run to run: its length and host, and whether it has a port.
static inline void show_address(const char *name, int result, const struct sockaddr_storage *address, socklen_t len)
{
    if (result < 0) {
        check_line("%s: -1 %s\n", name, inet_error(errno));
        return;
    }
    char ip[64] = "?";
    int port = 0;
    if (len >= sizeof(struct sockaddr_in) && address->ss_family == AF_INET) {
        inet_ntop(AF_INET, &((struct sockaddr_in *)address)->sin_addr, ip, sizeof ip);
        port = ((struct sockaddr_in *)address)->sin_port;
    } else if (len >= sizeof(struct sockaddr_in6) && address->ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)address)->sin6_addr, ip, sizeof ip);
        port = ((struct sockaddr_in6 *)address)->sin6_port;
    }
    check_line("%s: family %d, %s, %s, %d bytes\n", name, len > 1 ? address->ss_family : -1, ip, port ? "a port" : "no port", (int)len);
}

static inline void show_name(const char *name, int fd)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    int result = getsockname(fd, (struct sockaddr *)&address, &len);
    show_address(name, result, &address, len);
}

static inline void show_peer(const char *name, int fd)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    int result = getpeername(fd, (struct sockaddr *)&address, &len);
    show_address(name, result, &address, len);
}

static inline int get_option(int fd, int level, int option)
{
    int value = -7;
    socklen_t len = sizeof value;
    return getsockopt(fd, level, option, &value, &len) == 0 ? value : -1;
}

static inline int set_option(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof value);
}

// A listener on the IPv4 loopback address.
static inline int listener4(int backlog)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(fd >= 0 && bind4(fd, "127.0.0.1", 0) == 0 && listen(fd, backlog) == 0);
    return fd;
}

// Two ends of a connection over IPv4: who connected, and who accepted.
static inline void connected4(int ends[2])
{
    int listener = listener4(4);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(ends[0] >= 0 && connect4(ends[0], "127.0.0.1", port_of(listener)) == 0);
    ends[1] = accept(listener, NULL, NULL);
    REQUIRE(ends[1] >= 0);
    close(listener);
}

// What poll(2) says of a descriptor, at once, or (`until`) when one of these events is there.
static inline void show_poll(const char *name, int fd, int until)
{
    struct pollfd one = { fd, POLLIN | POLLOUT | POLLPRI | POLLRDHUP, 0 };
    for (;;) {
        REQUIRE(poll(&one, 1, 0) >= 0);
        if (!until || (one.revents & until) == until)
            break;
        check_sleep_ms(1);
    }
    check_line("%s:%s%s%s%s%s%s\n", name, one.revents & POLLIN ? " in" : "", one.revents & POLLPRI ? " pri" : "", one.revents & POLLOUT ? " out" : "",
               one.revents & POLLRDHUP ? " rdhup" : "", one.revents & POLLERR ? " err" : "", one.revents & POLLHUP ? " hup" : "");
}
#endif
