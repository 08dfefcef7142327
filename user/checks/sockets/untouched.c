// Several messages of a stream are read at once into memory that nobody has touched, and into memory of which only a part is there.
#include "../check.h"
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { MESSAGE = 4000, MESSAGES = 3, ALL = MESSAGE * MESSAGES, PAGE = 4096, ROOM = 16 * PAGE };

static int fds[2];

static void send_all(void)
{
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    char message[MESSAGE];
    for (int number = 0; number < MESSAGES; number++) {
        memset(message, 'a' + number, sizeof message);
        REQUIRE(write(fds[0], message, sizeof message) == sizeof message);
    }
    close(fds[0]);
}

// Room of which so many bytes are there.
static char *room(size_t bytes)
{
    char *memory = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED && (bytes == ROOM || munmap(memory + bytes, ROOM - bytes) == 0));
    return memory;
}

static int is_right(const char *memory)
{
    for (int at = 0; at < ALL; at++)
        if (memory[at] != 'a' + at / MESSAGE)
            return 0;
    return 1;
}

int main(void)
{
    char *memory = room(ROOM);
    send_all();
    CHECK("read", read(fds[1], memory, ROOM));
    CHECK_TRUE("read-right", is_right(memory));
    CHECK("read-end", read(fds[1], memory, ROOM));
    close(fds[1]);

    memory = room(ROOM);
    send_all();
    CHECK("peeked", recv(fds[1], memory, ROOM, MSG_PEEK));
    CHECK_TRUE("peeked-right", is_right(memory));
    memory = room(ROOM);
    struct iovec pieces[] = { { memory, 5000 }, { memory + 5000, ROOM - 5000 } };
    struct msghdr message = { .msg_iov = pieces, .msg_iovlen = 2 };
    CHECK("received", recvmsg(fds[1], &message, 0));
    CHECK_TRUE("received-right", is_right(memory));
    close(fds[1]);

    // The second message finds half of its room.
    memory = room(PAGE);
    send_all();
    CHECK("part", read(fds[1], memory, ROOM));
    CHECK("no-room", read(fds[1], memory + PAGE - 96, ROOM - PAGE + 96));
    memory = room(ROOM);
    CHECK("rest", read(fds[1], memory, ROOM));
    CHECK_TRUE("rest-right", memory[0] == 'b' && memory[MESSAGE] == 'c');
    close(fds[1]);

    // Memory that may only be read.
    memory = room(ROOM);
    REQUIRE(mprotect(memory + PAGE, PAGE, PROT_READ) == 0);
    send_all();
    CHECK("read-only", recv(fds[1], memory, ROOM, 0));
    return 0;
}
