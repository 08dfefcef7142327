// Addresses of Unix sockets: bind, connect, accept, and what calls say of the names at both ends.
#include "../check.h"
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

// Memory around an address, to see what a call writes.
struct room {
    unsigned char before[8];
    struct sockaddr_un address;
    unsigned char after[8];
    socklen_t len;
    unsigned char behind_len[12];
};

static void prepare(struct room *room, socklen_t len)
{
    memset(room, 0xaa, sizeof *room);
    room->len = len;
}

static int untouched(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 0xaa)
            return 0;
    return 1;
}

// Prints what a call told of an address: its length, its name, and whether only that was written.
static void show(const char *call, const struct room *room, socklen_t given)
{
    char name[64];
    snprintf(name, sizeof name, "%s-length", call);
    CHECK(name, room->len);
    snprintf(name, sizeof name, "%s-name", call);
    size_t start = offsetof(struct sockaddr_un, sun_path);
    if (given >= start && room->len > start)
        check_line("%s: %c%.*s\n", name, room->address.sun_path[0] ? room->address.sun_path[0] : '@',
                   (int)(room->len - start - 1), room->address.sun_path + 1);
    snprintf(name, sizeof name, "%s-writes-no-more", call);
    socklen_t written = room->len < given ? room->len : given;
    CHECK_TRUE(name, untouched(room->before, 8) && untouched((const unsigned char *)&room->address + written, sizeof room->address - written) &&
                         untouched(room->after, 8) && untouched(room->behind_len, 12));
}

static socklen_t named(struct sockaddr_un *address, const char *path)
{
    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    strcpy(address->sun_path, path);
    return offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1;
}

static socklen_t abstract(struct sockaddr_un *address, const char *name)
{
    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    int len = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "%s-%d", name, getpid());
    return offsetof(struct sockaddr_un, sun_path) + 1 + len;
}

static void datagrams(void)
{
    struct sockaddr_un address, other;
    struct room room;
    char text[32];
    int receiver = socket(AF_UNIX, SOCK_DGRAM, 0), nameless = socket(AF_UNIX, SOCK_DGRAM, 0), sender = socket(AF_UNIX, SOCK_DGRAM, 0);
    socklen_t len = named(&address, "receiver");
    CHECK("bind", bind(receiver, (struct sockaddr *)&address, len));
    socklen_t sender_len = named(&other, "sender");
    CHECK("bind-sender", bind(sender, (struct sockaddr *)&other, sender_len));
    prepare(&room, sizeof room.address);
    CHECK("nothing", recvfrom(receiver, text, sizeof text, MSG_DONTWAIT, (struct sockaddr *)&room.address, &room.len));
    CHECK_TRUE("nothing-written", untouched((unsigned char *)&room.address, sizeof room.address) && untouched(room.behind_len, 12));
    CHECK("length-kept", room.len);
    CHECK("send-nameless", sendto(nameless, "a", 1, 0, (struct sockaddr *)&address, len));
    prepare(&room, sizeof room.address);
    CHECK("from-nameless", recvfrom(receiver, text, sizeof text, 0, (struct sockaddr *)&room.address, &room.len));
    show("nameless", &room, sizeof room.address);
    CHECK("send-named", sendto(sender, "bc", 2, 0, (struct sockaddr *)&address, len));
    prepare(&room, sizeof room.address);
    CHECK("from-named", recvfrom(receiver, text, sizeof text, 0, (struct sockaddr *)&room.address, &room.len));
    show("named", &room, sizeof room.address);
    CHECK("send-cut", sendto(sender, "def", 3, 0, (struct sockaddr *)&address, len));
    prepare(&room, 4);
    CHECK("from-cut", recvfrom(receiver, text, sizeof text, 0, (struct sockaddr *)&room.address, &room.len));
    show("cut", &room, 4);
    CHECK("send-unasked", sendto(sender, "g", 1, 0, (struct sockaddr *)&address, len));
    CHECK("from-unasked", recvfrom(receiver, text, sizeof text, 0, NULL, NULL));
    CHECK("send-bad-length", sendto(sender, "h", 1, 0, (struct sockaddr *)&address, len));
    prepare(&room, (socklen_t)-1);
    CHECK("from-bad-length", recvfrom(receiver, text, sizeof text, MSG_DONTWAIT, (struct sockaddr *)&room.address, &room.len));
    prepare(&room, sizeof room.address);
    struct iovec piece = { text, sizeof text };
    struct msghdr message = { .msg_name = &room.address, .msg_namelen = sizeof room.address, .msg_iov = &piece, .msg_iovlen = 1 };
    REQUIRE(sendto(sender, "ijk", 3, 0, (struct sockaddr *)&address, len) == 3);
    CHECK("recvmsg", recvmsg(receiver, &message, 0));
    room.len = message.msg_namelen;
    show("recvmsg", &room, sizeof room.address);
    REQUIRE(sendto(nameless, "l", 1, 0, (struct sockaddr *)&address, len) == 1);
    CHECK("recvmsg-nameless", recvmsg(receiver, &message, 0));
    CHECK("recvmsg-nameless-length", message.msg_namelen);
    CHECK("no-target", send(nameless, "x", 1, 0));
    len = named(&other, "missing");
    CHECK("missing-target", sendto(nameless, "x", 1, 0, (struct sockaddr *)&other, len));
    check_write_file("file", "");
    len = named(&other, "file");
    CHECK("file-as-target", sendto(nameless, "x", 1, 0, (struct sockaddr *)&other, len));
    len = named(&address, "receiver");
    CHECK("connect", connect(nameless, (struct sockaddr *)&address, len));
    CHECK("send-connected", send(nameless, "x", 1, 0));
    prepare(&room, sizeof room.address);
    CHECK("peer", getpeername(nameless, (struct sockaddr *)&room.address, &room.len));
    show("peer", &room, sizeof room.address);
    close(receiver);
    CHECK("send-closed", send(nameless, "x", 1, 0));
    CHECK("connect-closed", connect(sender, (struct sockaddr *)&address, len));
}

static void streams(void)
{
    struct sockaddr_un address;
    struct room room;
    char text[32];
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK("listen-unbound", listen(listener, 1));
    CHECK("accept-not-listening", accept(listener, NULL, NULL));
    socklen_t len = abstract(&address, "listener");
    CHECK("bind-abstract", bind(listener, (struct sockaddr *)&address, len));
    CHECK("bind-again", bind(listener, (struct sockaddr *)&address, len));
    CHECK("bind-again-to-any", bind(listener, (struct sockaddr *)&address, sizeof(sa_family_t)));
    int second = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK("name-taken", bind(second, (struct sockaddr *)&address, len));
    CHECK("connect-before-listen", connect(second, (struct sockaddr *)&address, len));
    CHECK("listen", listen(listener, 1));
    CHECK("connect", connect(second, (struct sockaddr *)&address, len));
    CHECK("connect-again", connect(second, (struct sockaddr *)&address, len));
    prepare(&room, sizeof room.address);
    int accepted = accept4(listener, (struct sockaddr *)&room.address, &room.len, SOCK_CLOEXEC);
    CHECK_TRUE("accept", accepted >= 0);
    show("accept", &room, sizeof room.address);
    CHECK("accept-flags", fcntl(accepted, F_GETFD));
    CHECK("accept-bad-flags", syscall(SYS_accept4, listener, NULL, NULL, 1));
    prepare(&room, sizeof room.address);
    CHECK("own-name", getsockname(accepted, (struct sockaddr *)&room.address, &room.len));
    CHECK("own-name-length", room.len == len);
    prepare(&room, sizeof room.address);
    CHECK("peer-of-accepted", getpeername(accepted, (struct sockaddr *)&room.address, &room.len));
    show("peer-of-accepted", &room, sizeof room.address);
    // A stream says where it comes from, if the sender has a name.
    REQUIRE(write(accepted, "hello", 5) == 5);
    prepare(&room, sizeof room.address);
    CHECK("stream", recvfrom(second, text, sizeof text, 0, (struct sockaddr *)&room.address, &room.len));
    CHECK("stream-from-named", room.len == len);
    REQUIRE(write(second, "hello", 5) == 5);
    prepare(&room, sizeof room.address);
    CHECK("stream-back", recvfrom(accepted, text, sizeof text, 0, (struct sockaddr *)&room.address, &room.len));
    CHECK("stream-from-nameless", room.len);
    CHECK("sendto-connected", sendto(second, "x", 1, 0, (struct sockaddr *)&address, len));
    CHECK("accept-nothing", (fcntl(listener, F_SETFL, O_NONBLOCK), accept(listener, NULL, NULL)));
    close(listener);
    CHECK("accepted-lives", write(second, "y", 1));
    CHECK("connect-gone", connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, len));
    int again = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK("name-free-only-without-accepted", bind(again, (struct sockaddr *)&address, len));
    // What is no address.
    int odd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK("too-short", bind(odd, (struct sockaddr *)&address, 1));
    CHECK("too-long", bind(odd, (struct sockaddr *)&address, sizeof address + 1));
    CHECK("negative", bind(odd, (struct sockaddr *)&address, (socklen_t)-1));
    address.sun_family = AF_INET;
    CHECK("other-family", bind(odd, (struct sockaddr *)&address, len));
    CHECK("bad-pointer", bind(odd, BAD_POINTER, len));
    // Asking for no name gives one.
    address.sun_family = AF_UNIX;
    CHECK("automatic", bind(odd, (struct sockaddr *)&address, sizeof(sa_family_t)));
    prepare(&room, sizeof room.address);
    CHECK("automatic-name", getsockname(odd, (struct sockaddr *)&room.address, &room.len));
    CHECK("automatic-length", room.len);
    CHECK("automatic-first", room.address.sun_path[0]);
    struct stat st;
    len = named(&address, "socket");
    CHECK("in-directory", bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, len));
    CHECK("mode", stat("socket", &st) == 0 ? st.st_mode : 0);
    CHECK("open", open("socket", O_RDWR));
    CHECK("in-directory-again", bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, len));
    CHECK("unlink", unlink("socket"));
}

int main(void)
{
    datagrams();
    streams();
    return 0;
}
