// What sockets cost on the loopback device: operations that several programs measure, and what these are made of. What counts is the time that a function gives, and what stands between its marks.
#pragma once
#include "bench.h"
#include "mark.h"
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

// The loopback device, which Linux begins with down.
static inline void bring_loopback_up(void)
{
    struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    must(fd, "socket");
    must(ioctl(fd, SIOCSIFFLAGS, &request), "lo up");
    close(fd);
}

// A socket at a port of the loopback device.
static inline int bound_socket(int type, struct sockaddr_in *address)
{
    socklen_t len = sizeof *address;
    int fd = socket(AF_INET, type, 0);
    must(fd, "socket");
    *address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    must(bind(fd, (struct sockaddr *)address, len), "bind");
    must(getsockname(fd, (struct sockaddr *)address, &len), "getsockname");
    return fd;
}

static inline int listening_socket(struct sockaddr_in *address)
{
    int fd = bound_socket(SOCK_STREAM, address);
    must(listen(fd, 1), "listen");
    return fd;
}

static inline int connected_socket(int type, const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, type, 0);
    must(fd, "socket");
    must(connect(fd, (const struct sockaddr *)address, sizeof *address), "connect");
    return fd;
}

// A connection with a listener: the client's end and the server's.
static inline void connect_and_accept(int listener, const struct sockaddr_in *address, int ends[2])
{
    ends[0] = connected_socket(SOCK_STREAM, address);
    must(ends[1] = accept(listener, NULL, NULL), "accept");
}

// A connection whose ends send at once what they are given.
static inline void tcp_pair(int ends[2])
{
    struct sockaddr_in address;
    int on = 1, listener = listening_socket(&address);
    connect_and_accept(listener, &address, ends);
    for (int i = 0; i < 2; i++)
        must(setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
    close(listener);
}

// Two sockets that are connected with each other.
static inline void udp_pair(int ends[2])
{
    struct sockaddr_in addresses[2];
    for (int i = 0; i < 2; i++)
        ends[i] = bound_socket(SOCK_DGRAM, &addresses[i]);
    for (int i = 0; i < 2; i++)
        must(connect(ends[i], (struct sockaddr *)&addresses[1 - i], sizeof addresses[0]), "connect");
}

// One byte goes to another process and back, over two ends of a connection.
static inline uint64_t socket_round_trip(long count, const int ends[2])
{
    char byte = 0;
    pid_t pid = fork();
    must(pid, "fork");
    if (pid == 0) {
        for (long i = 0; i < count + 1; i++)
            if (read(ends[1], &byte, 1) != 1 || write(ends[1], &byte, 1) != 1)
                _exit(1);
        _exit(0);
    }
    uint64_t start = 0;
    for (long i = 0; i < count + 1; i++) {
        if (i == 1) {
            start = ticks();
            MARK_BEGIN();
        }
        call3(SYS_write, ends[0], (long)&byte, 1);
        call3(SYS_read, ends[0], (long)&byte, 1);
    }
    MARK_END();
    uint64_t took = ticks() - start;
    must(waitpid(pid, NULL, 0), "wait");
    close(ends[0]);
    close(ends[1]);
    return took;
}

static inline uint64_t tcp_round_trip(long count)
{
    int ends[2];
    tcp_pair(ends);
    return socket_round_trip(count, ends);
}

static inline uint64_t udp_round_trip(long count)
{
    int ends[2];
    udp_pair(ends);
    return socket_round_trip(count, ends);
}

// A connection is made and closed by both ends.
static inline uint64_t tcp_connect(long count)
{
    struct sockaddr_in address;
    int listener = listening_socket(&address), ends[2];
    uint64_t start = ticks();
    MARK_BEGIN();
    for (long i = 0; i < count; i++) {
        connect_and_accept(listener, &address, ends);
        close(ends[0]);
        close(ends[1]);
    }
    MARK_END();
    uint64_t took = ticks() - start;
    close(listener);
    return took;
}
