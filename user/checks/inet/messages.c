// Flags of send(2) and recv(2) on connections, messages in pieces, and the urgent byte.
#include "../check.h"
#include "../inet.h"
#include <sys/sendfile.h>

static int ends[2];

static void urgent(int in_line)
{
    char text[32], byte;
    int at, waiting;
    connected4(ends);
    int in = ends[1];
    REQUIRE(set_option(in, SOL_SOCKET, SO_OOBINLINE, in_line) == 0);
    INET("none", recv(in, &byte, 1, MSG_OOB));
    REQUIRE(ioctl(in, SIOCATMARK, &at) == 0);
    INET("none-at-mark", at);
    REQUIRE(send(ends[0], "abc", 3, 0) == 3);
    INET("send", send(ends[0], "def", 3, MSG_OOB));
    REQUIRE(send(ends[0], "ghi", 3, 0) == 3);
    show_poll("poll", in, POLLPRI);
    // All of it has come.
    while (recv(in, text, sizeof text, MSG_PEEK) < 5)
        check_sleep_ms(1);
    check_sleep_ms(20);
    REQUIRE(ioctl(in, FIONREAD, &waiting) == 0);
    INET("waiting", waiting);
    REQUIRE(ioctl(in, SIOCATMARK, &at) == 0);
    INET("at-mark", at);
    INET("peek-urgent", recv(in, &byte, 1, MSG_OOB | MSG_PEEK));
    INET("read-before", read(in, text, sizeof text));
    REQUIRE(ioctl(in, SIOCATMARK, &at) == 0);
    INET("at-mark-then", at);
    struct iovec piece = { &byte, 1 };
    struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1 };
    byte = '?';
    INET("urgent", recvmsg(in, &message, MSG_OOB));
    check_line("urgent-byte: %c, flags %#x\n", byte, message.msg_flags);
    INET("urgent-again", recv(in, &byte, 1, MSG_OOB));
    show_poll("poll-then", in, 0);
    long got = read(in, text, sizeof text);
    check_line("rest: %.*s\n", (int)got, text);
    REQUIRE(ioctl(in, SIOCATMARK, &at) == 0);
    INET("behind-mark", at);
    INET("nothing", recv(in, text, sizeof text, MSG_DONTWAIT));
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    char text[64] = { 0 };
    connected4(ends);
    int out = ends[0], in = ends[1];
    REQUIRE(send(out, "abcdefgh", 8, 0) == 8);
    INET("peek", recv(in, text, 3, MSG_PEEK));
    INET("peek-more", recv(in, text, sizeof text, MSG_PEEK));
    INET("read", recv(in, text, 3, 0));
    CHECK_STR("text", text);
    INET("truncated", recv(in, text, 2, MSG_TRUNC));
    INET("truncated-nowhere", recv(in, NULL, 2, MSG_TRUNC));
    memset(text, 0, sizeof text);
    INET("rest", recv(in, text, sizeof text, MSG_DONTWAIT));
    CHECK_STR("rest-text", text);
    INET("nothing", recv(in, text, sizeof text, MSG_DONTWAIT));
    INET("empty-send", send(out, "", 0, 0));
    INET("empty-read", read(in, text, 0));
    INET("empty-recv", recv(in, text, 0, MSG_DONTWAIT));
    INET("bad-buffer", send(out, BAD_POINTER, 5, 0));
    REQUIRE(send(out, "xyz", 3, 0) == 3);
    INET("bad-room", recv(in, BAD_POINTER, 5, 0));
    INET("still-there", recv(in, text, sizeof text, 0));
    // An address is ignored.
    struct sockaddr_in other = v4("127.0.0.1", 1);
    INET("to-other", sendto(out, "q", 1, 0, (struct sockaddr *)&other, sizeof other));
    struct sockaddr_storage from;
    socklen_t len = sizeof from;
    INET("from", recvfrom(in, text, sizeof text, 0, (struct sockaddr *)&from, &len));
    INET("from-length", len);

    // Waiting for all of it.
    pid_t child = check_fork();
    if (child == 0) {
        for (int i = 0; i < 5; i++) {
            check_sleep_ms(5);
            REQUIRE(send(out, "12345", 5, 0) == 5);
        }
        _exit(0);
    }
    INET("wait-all", recv(in, text, 25, MSG_WAITALL));
    check_wait(child);
    REQUIRE(send(out, "123", 3, 0) == 3);
    INET("wait-all-not", recv(in, text, 25, MSG_WAITALL | MSG_DONTWAIT));
    REQUIRE(send(out, "1234", 4, 0) == 4);
    struct timeval soon = { 0, 30000 };
    setsockopt(in, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
    INET("wait-all-in-time", recv(in, text, 25, MSG_WAITALL));
    setsockopt(in, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 0 }, sizeof soon);
    child = check_fork();
    if (child == 0) {
        close(in);
        REQUIRE(send(out, "12", 2, 0) == 2);
        check_sleep_ms(10);
        REQUIRE(send(out, "34", 2, 0) == 2);
        shutdown(out, SHUT_WR);
        _exit(0);
    }
    INET("wait-all-end", recv(in, text, 25, MSG_WAITALL));
    INET("end", recv(in, text, 25, MSG_WAITALL));
    check_wait(child);
    close(out);
    close(in);

    // In pieces.
    connected4(ends);
    out = ends[0], in = ends[1];
    struct iovec pieces[3] = { { "one", 3 }, { "", 0 }, { "three", 5 } };
    INET("writev", writev(out, pieces, 3));
    struct msghdr message = { .msg_iov = pieces, .msg_iovlen = 3 };
    INET("sendmsg", sendmsg(out, &message, MSG_MORE));
    char first[5], second[64];
    struct iovec rooms[2] = { { first, 5 }, { second, sizeof second } };
    while (recv(in, text, sizeof text, MSG_PEEK) < 16)
        check_sleep_ms(1);
    INET("readv", readv(in, rooms, 2));
    check_line("readv-text: %.5s %.11s\n", first, second);
    REQUIRE(send(out, "again", 5, 0) == 5);
    char control[64];
    struct sockaddr_storage name;
    message = (struct msghdr){ .msg_iov = rooms, .msg_iovlen = 2, .msg_control = control, .msg_controllen = sizeof control, .msg_name = &name, .msg_namelen = sizeof name };
    INET("recvmsg", recvmsg(in, &message, 0));
    check_line("recvmsg-header: %d %d %#x\n", (int)message.msg_namelen, (int)message.msg_controllen, message.msg_flags);
    // From files, and to them.
    check_write_file("file", "the text of a file");
    int file = open("file", O_RDWR);
    INET("sendfile", sendfile(out, file, NULL, 100));
    int pipe_ends[2];
    REQUIRE(pipe(pipe_ends) == 0);
    INET("splice-in", splice(in, NULL, pipe_ends[1], NULL, 100, 0));
    INET("splice-out", splice(pipe_ends[0], NULL, out, NULL, 100, 0));
    memset(text, 0, sizeof text);
    INET("spliced", read(in, text, sizeof text));
    CHECK_STR("spliced-text", text);
    close(out);
    close(in);

    check_line("urgent, apart:\n");
    urgent(0);
    check_line("urgent, in line:\n");
    urgent(1);
    // A second urgent byte takes the place of the first.
    connected4(ends);
    REQUIRE(send(ends[0], "1", 1, MSG_OOB) == 1);
    show_poll("first", ends[1], POLLPRI);
    REQUIRE(send(ends[0], "2", 1, MSG_OOB) == 1);
    check_sleep_ms(20);
    INET("second-urgent", recv(ends[1], text, 1, MSG_OOB));
    check_line("second-byte: %c\n", text[0]);
    INET("first-is-lost", recv(ends[1], text, 8, MSG_DONTWAIT));
    return 0;
}
