// sendmsg and recvmsg: headers that cannot be right, and in which order that is found out.
#include "../check.h"
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

static int stream[2], datagram[2];
static char byte = 'b', buffer[64];

static long send_with(int fd, struct msghdr message)
{
    return syscall(SYS_sendmsg, fd, &message, MSG_DONTWAIT);
}

static long receive_with(int fd, struct msghdr message)
{
    return syscall(SYS_recvmsg, fd, &message, MSG_DONTWAIT);
}

int main(void)
{
    static struct iovec many[1025], one;
    one = (struct iovec){ &byte, 1 };
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "nobody" };
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, stream) == 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, datagram) == 0);
    int closed = dup(0), file = open("/dev/null", O_RDWR);
    close(closed);
    CHECK("send-1024", send_with(stream[0], (struct msghdr){ .msg_iov = many, .msg_iovlen = 1024 }));
    CHECK("send-1025", send_with(stream[0], (struct msghdr){ .msg_iov = many, .msg_iovlen = 1025 }));
    CHECK("send-1025-bad", send_with(stream[0], (struct msghdr){ .msg_iov = BAD_POINTER, .msg_iovlen = 1025 }));
    CHECK("send-huge", send_with(stream[0], (struct msghdr){ .msg_iov = many, .msg_iovlen = -1 }));
    CHECK("receive-1025", receive_with(stream[1], (struct msghdr){ .msg_iov = many, .msg_iovlen = 1025 }));
    CHECK("send-bad-vectors", send_with(stream[0], (struct msghdr){ .msg_iov = BAD_POINTER, .msg_iovlen = 1 }));
    CHECK("send-no-control", send_with(stream[0], (struct msghdr){ .msg_iov = &one, .msg_iovlen = 1, .msg_controllen = 64 }));
    CHECK("send-bad-control", send_with(stream[0], (struct msghdr){ .msg_iov = &one, .msg_iovlen = 1, .msg_control = BAD_POINTER, .msg_controllen = 64 }));
    CHECK("send-short-control", send_with(stream[0], (struct msghdr){ .msg_iov = &one, .msg_iovlen = 1, .msg_control = buffer, .msg_controllen = 8 }));
    CHECK("send-long-control", send_with(stream[0], (struct msghdr){ .msg_iov = &one, .msg_iovlen = 1, .msg_control = buffer, .msg_controllen = 0x7fffffff }));
    CHECK("send-control-without-vectors", send_with(stream[0], (struct msghdr){ .msg_iov = BAD_POINTER, .msg_iovlen = 1, .msg_controllen = 64 }));
    CHECK("sent", recv(stream[1], buffer, sizeof buffer, MSG_DONTWAIT));
    CHECK("send-name-negative", send_with(datagram[0], (struct msghdr){ .msg_name = &address, .msg_namelen = -1, .msg_iov = &one, .msg_iovlen = 1 }));
    CHECK("send-no-name-negative", send_with(datagram[0], (struct msghdr){ .msg_namelen = -1, .msg_iov = &one, .msg_iovlen = 1 }));
    CHECK("send-name-long", send_with(datagram[0], (struct msghdr){ .msg_name = buffer, .msg_namelen = 4000, .msg_iov = &one, .msg_iovlen = 1 }));
    CHECK("send-name-empty", send_with(datagram[0], (struct msghdr){ .msg_name = &address, .msg_namelen = 0, .msg_iov = &one, .msg_iovlen = 1 }));
    CHECK("send-name-bad", send_with(datagram[0], (struct msghdr){ .msg_name = BAD_POINTER, .msg_namelen = 16, .msg_iov = many, .msg_iovlen = 1025 }));
    CHECK("send-name-nobody", send_with(datagram[0], (struct msghdr){ .msg_name = &address, .msg_namelen = sizeof address, .msg_iov = &one, .msg_iovlen = 1 }));
    CHECK("sent-datagram", recv(datagram[1], buffer, sizeof buffer, MSG_DONTWAIT));
    CHECK("sent-datagram-again", recv(datagram[1], buffer, sizeof buffer, MSG_DONTWAIT));
    CHECK("receive-name-negative", receive_with(datagram[1], (struct msghdr){ .msg_name = buffer, .msg_namelen = -1, .msg_iov = &one, .msg_iovlen = 1 }));
    CHECK("receive-no-name-negative", receive_with(datagram[1], (struct msghdr){ .msg_namelen = -1, .msg_iov = &one, .msg_iovlen = 1 }));
    REQUIRE(send(datagram[0], "x", 1, 0) == 1);
    CHECK("receive-name-negative-kept", receive_with(datagram[1], (struct msghdr){ .msg_name = buffer, .msg_namelen = -1, .msg_iov = &one, .msg_iovlen = 1 }));
    CHECK("receive-name-bad", receive_with(datagram[1], (struct msghdr){ .msg_name = BAD_POINTER, .msg_namelen = 4, .msg_iov = &one, .msg_iovlen = 1 }));
    CHECK("still-there", recv(datagram[1], buffer, sizeof buffer, MSG_DONTWAIT));
    // What is looked at first.
    CHECK("send-closed-bad", syscall(SYS_sendmsg, closed, BAD_POINTER, 0));
    CHECK("send-file-bad", syscall(SYS_sendmsg, file, BAD_POINTER, 0));
    CHECK("send-bad", syscall(SYS_sendmsg, stream[0], BAD_POINTER, 0));
    CHECK("receive-closed-bad", syscall(SYS_recvmsg, closed, BAD_POINTER, 0));
    CHECK("receive-file-bad", syscall(SYS_recvmsg, file, BAD_POINTER, 0));
    CHECK("receive-bad", syscall(SYS_recvmsg, stream[0], BAD_POINTER, MSG_DONTWAIT));
    CHECK("sendto-closed-bad-address", syscall(SYS_sendto, closed, buffer, 1L, 0, BAD_POINTER, 16));
    CHECK("sendto-file-bad-address", syscall(SYS_sendto, file, buffer, 1L, 0, BAD_POINTER, 16));
    CHECK("sendto-closed-kernel-buffer", syscall(SYS_sendto, closed, (void *)-4096L, 1L, 0, NULL, 0));
    CHECK("sendto-bad-address", syscall(SYS_sendto, datagram[0], buffer, 1L, 0, BAD_POINTER, 16));
    CHECK("sendto-long-address", syscall(SYS_sendto, datagram[0], buffer, 1L, 0, buffer, 129));
    CHECK("sendto-negative-address", syscall(SYS_sendto, datagram[0], buffer, 1L, 0, buffer, -1));
    CHECK("recvfrom-closed-kernel-buffer", syscall(SYS_recvfrom, closed, (void *)-4096L, 1L, 0, NULL, NULL));
    CHECK("bind-closed-bad", syscall(SYS_bind, closed, BAD_POINTER, 16));
    CHECK("connect-closed-bad", syscall(SYS_connect, closed, BAD_POINTER, 16));
    CHECK("bind-file-bad", syscall(SYS_bind, file, BAD_POINTER, 16));
    CHECK("connect-file-bad", syscall(SYS_connect, file, BAD_POINTER, 16));
    CHECK("connect-negative", syscall(SYS_connect, datagram[0], &address, -1));
    CHECK("accept-closed-flags", syscall(SYS_accept4, closed, NULL, NULL, 1));
    CHECK("accept-not-listening", syscall(SYS_accept, datagram[0], NULL, NULL));
    CHECK("shutdown-closed-junk", syscall(SYS_shutdown, closed, 7));
    CHECK("shutdown-junk", syscall(SYS_shutdown, stream[0], 7));
    CHECK("listen-datagram", listen(datagram[0], 1));
    CHECK("option-negative", syscall(SYS_setsockopt, stream[0], SOL_SOCKET, SO_PASSCRED, buffer, -1));
    CHECK("option-bad", syscall(SYS_setsockopt, stream[0], SOL_SOCKET, SO_PASSCRED, BAD_POINTER, 4));
    int length = -1, value;
    CHECK("get-option-negative", syscall(SYS_getsockopt, stream[0], SOL_SOCKET, SO_TYPE, &value, &length));
    CHECK("get-option-bad-length", syscall(SYS_getsockopt, stream[0], SOL_SOCKET, SO_TYPE, &value, BAD_POINTER));
    CHECK("name-negative", syscall(SYS_getsockname, stream[0], buffer, &length));
    CHECK("name-bad-length", syscall(SYS_getsockname, stream[0], buffer, BAD_POINTER));
    length = 16;
    CHECK("name-bad", syscall(SYS_getsockname, stream[0], BAD_POINTER, &length));
    CHECK("name-of-file", syscall(SYS_getsockname, file, BAD_POINTER, BAD_POINTER));
    CHECK("pair-bad", syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, BAD_POINTER));
    CHECK("pair-bad-type", syscall(SYS_socketpair, AF_UNIX, 99, 0, BAD_POINTER));
    return 0;
}
