// Buffers of no bytes at addresses where no user memory can be: which calls look at the address all the same.
#include "../check.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/xattr.h>

static int file, empty_pipe[2], full_pipe[2], stream[2], datagram[2], event, zero, null, directory;

static void everything(const char *where, void *at)
{
    char name[64];
#define EACH(what, expr)                                     \
    do {                                                     \
        snprintf(name, sizeof name, "%s-%s", where, what);   \
        CHECK(name, expr);                                   \
    } while (0)
    struct iovec none = { at, 0 }, both[2] = { { "ab", 2 }, { at, 0 } };
    EACH("read-file", syscall(SYS_read, file, at, 0L));
    EACH("write-file", syscall(SYS_write, file, at, 0L));
    EACH("pread", syscall(SYS_pread64, file, at, 0L, 0L));
    EACH("pwrite", syscall(SYS_pwrite64, file, at, 0L, 0L));
    EACH("readv", syscall(SYS_readv, file, &none, 1L));
    EACH("writev", syscall(SYS_writev, file, &none, 1L));
    EACH("preadv", syscall(SYS_preadv, file, &none, 1L, 0L, 0L));
    EACH("writev-second", syscall(SYS_writev, file, both, 2L));
    EACH("readv-no-vectors", syscall(SYS_readv, file, at, 0L));
    EACH("writev-no-vectors", syscall(SYS_writev, file, at, 0L));
    EACH("read-empty-pipe", syscall(SYS_read, empty_pipe[0], at, 0L));
    EACH("read-full-pipe", syscall(SYS_read, full_pipe[0], at, 0L));
    EACH("write-pipe", syscall(SYS_write, full_pipe[1], at, 0L));
    EACH("write-reading-end", syscall(SYS_write, full_pipe[0], at, 0L));
    EACH("read-writing-end", syscall(SYS_read, full_pipe[1], at, 0L));
    EACH("read-event", syscall(SYS_read, event, at, 0L));
    EACH("write-event", syscall(SYS_write, event, at, 0L));
    EACH("read-zero", syscall(SYS_read, zero, at, 0L));
    EACH("write-null", syscall(SYS_write, null, at, 0L));
    EACH("read-directory", syscall(SYS_read, directory, at, 0L));
    EACH("write-socket", syscall(SYS_write, stream[0], at, 0L));
    EACH("send", syscall(SYS_sendto, stream[0], at, 0L, 0, NULL, 0));
    EACH("receive", syscall(SYS_recvfrom, stream[1], at, 0L, MSG_DONTWAIT, NULL, NULL));
    EACH("send-datagram", syscall(SYS_sendto, datagram[0], at, 0L, MSG_DONTWAIT, NULL, 0));
    EACH("receive-datagram", syscall(SYS_recvfrom, datagram[1], at, 0L, MSG_DONTWAIT, NULL, NULL));
    EACH("receive-nothing", syscall(SYS_recvfrom, datagram[1], at, 0L, MSG_DONTWAIT, NULL, NULL));
    struct msghdr message = { .msg_iov = &none, .msg_iovlen = 1 };
    EACH("sendmsg", syscall(SYS_sendmsg, stream[0], &message, MSG_DONTWAIT));
    EACH("recvmsg", syscall(SYS_recvmsg, stream[1], &message, MSG_DONTWAIT));
    message = (struct msghdr){ .msg_iov = at };
    EACH("sendmsg-no-vectors", syscall(SYS_sendmsg, stream[0], &message, MSG_DONTWAIT));
    EACH("recvmsg-no-vectors", syscall(SYS_recvmsg, stream[1], &message, MSG_DONTWAIT));
    message = (struct msghdr){ .msg_control = at };
    EACH("sendmsg-no-control", syscall(SYS_sendmsg, stream[0], &message, MSG_DONTWAIT));
    EACH("bind", syscall(SYS_bind, datagram[0], at, 0));
    EACH("connect", syscall(SYS_connect, datagram[0], at, 0));
    EACH("set-option", syscall(SYS_setsockopt, stream[0], SOL_SOCKET, SO_PASSCRED, at, 0));
    EACH("getrandom", syscall(SYS_getrandom, at, 0L, 0));
    EACH("poll", syscall(SYS_poll, at, 0, 0));
    EACH("ppoll", syscall(SYS_ppoll, at, 0, &(struct timespec){ 0, 0 }, NULL, 8L));
    EACH("select", syscall(SYS_select, 0, at, at, at, &(struct timeval){ 0, 0 }));
    EACH("getdents", syscall(SYS_getdents64, directory, at, 0));
    EACH("readlink", syscall(SYS_readlink, "link", at, 0));
    EACH("getcwd", syscall(SYS_getcwd, at, 0L));
    EACH("getgroups", syscall(SYS_getgroups, 0, at));
    EACH("setgroups", syscall(SYS_setgroups, 0, at));
    EACH("listxattr", syscall(SYS_listxattr, "f", at, 0L));
    EACH("affinity", syscall(SYS_sched_setaffinity, 0, 0L, at));
    EACH("vm-read", syscall(SYS_process_vm_readv, getpid(), &none, 1L, &none, 1L, 0L));
    EACH("vm-read-none", syscall(SYS_process_vm_readv, getpid(), at, 0L, at, 0L, 0L));
    EACH("mincore", syscall(SYS_mincore, 0L, 0L, at));
    EACH("vmsplice", syscall(SYS_vmsplice, full_pipe[1], &none, 1L, SPLICE_F_NONBLOCK));
}

int main(void)
{
    check_write_file("f", "some text");
    REQUIRE(symlink("f", "link") == 0);
    file = open("f", O_RDWR);
    zero = open("/dev/zero", O_RDWR);
    null = open("/dev/null", O_RDWR);
    directory = open(".", O_RDONLY | O_DIRECTORY);
    event = eventfd(1, EFD_NONBLOCK);
    REQUIRE(file >= 0 && zero >= 0 && null >= 0 && directory >= 0 && event >= 0);
    REQUIRE(pipe2(empty_pipe, O_NONBLOCK) == 0 && pipe2(full_pipe, O_NONBLOCK) == 0 && write(full_pipe[1], "content", 7) == 7);
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, stream) == 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, datagram) == 0);
    REQUIRE(write(stream[0], "stream", 6) == 6);
    everything("null", NULL);
    everything("unmapped", BAD_POINTER);
    everything("last-page", (void *)0x7fffffffe000);
    everything("kernel", (void *)0xffff800000000000);
    everything("non-canonical", (void *)0x8000000000000000);
    everything("last", (void *)-1L);
    return 0;
}
