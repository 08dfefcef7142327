// Pipes, sockets and terminals: what is written arrives once, whole and in order.
#include "stress.h"

#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>

#define WRITERS 3
#define READERS 2
#define MESSAGES 80
// At most PIPE_BUF: such writes are not mixed with others.
#define MESSAGE_BYTES 512

struct message {
    uint32_t writer, turn, words[MESSAGE_BYTES / 4 - 2];
};

static void compose(struct message *message, uint32_t writer, uint32_t turn)
{
    message->writer = writer;
    message->turn = turn;
    for (uint32_t i = 0; i < MESSAGE_BYTES / 4 - 2; i++)
        message->words[i] = writer << 20 ^ turn << 8 ^ i;
}

// Whether it is whole.
static int is_right(const struct message *message)
{
    struct message expected;
    compose(&expected, message->writer, message->turn);
    return message->writer < WRITERS && memcmp(message, &expected, sizeof expected) == 0;
}

static int ends[2];
static struct {
    atomic_int arrived[WRITERS];
} *tally;

static void write_or_read_pipe(int index)
{
    struct message message;
    if (index < WRITERS) {
        close(ends[0]);
        for (uint32_t i = 0; i < MESSAGES; i++) {
            compose(&message, index, i);
            MUST(write(ends[1], &message, sizeof message) == sizeof message);
        }
        return;
    }
    close(ends[1]);
    long next[WRITERS] = { 0 };
    ssize_t got;
    while ((got = read(ends[0], &message, sizeof message)) > 0) {
        HOLDS(got == sizeof message && is_right(&message), "a message of %ld bytes is torn", (long)got);
        if (message.writer >= WRITERS)
            break;
        // Another reader may have got those between.
        HOLDS(message.turn >= next[message.writer], "message %u came after %ld", message.turn, next[message.writer] - 1);
        next[message.writer] = message.turn + 1;
        atomic_fetch_add(&tally->arrived[message.writer], 1);
    }
    HOLDS(got == 0, "reading: %s", strerror(errno));
}

static void pipes_round(void)
{
    tally = shared_memory(PAGE);
    MUST(pipe2(ends, O_CLOEXEC) == 0);
    if (any(2))
        MUST(fcntl(ends[1], F_SETPIPE_SZ, PAGE) > 0);
    pid_t pids[WRITERS + READERS];
    for (int i = 0; i < WRITERS + READERS; i++) {
        MUST((pids[i] = fork()) >= 0);
        if (pids[i] == 0) {
            settle();
            write_or_read_pipe(i);
            _exit(0);
        }
    }
    // Readers see the end once the last writer has ended and this process has closed its own.
    close(ends[0]);
    close(ends[1]);
    for (int i = 0; i < WRITERS + READERS; i++)
        HOLDS(status_of(pids[i]) == 0, "worker %d failed", i);
    for (int i = 0; i < WRITERS; i++)
        HOLDS(tally->arrived[i] == MESSAGES, "%d of %d messages of writer %d", tally->arrived[i], MESSAGES, i);
    munmap(tally, PAGE);
    count(WRITERS * MESSAGES);
}

static int pair[2], kind;

static uint8_t byte_at(uint32_t place, int direction)
{
    return (uint8_t)(place * 7 + (place >> 8) * 13 + (uint32_t)direction * 101);
}

#define STREAM_BYTES 60000u

// Two talk at the same time: one writer and one reader at each end, with pieces of all sizes.
static void talk(int index)
{
    int end = index / 2, direction = index % 2 == 0 ? end : !end;
    uint8_t piece[3000];
    uint32_t place = 0;
    while (place < STREAM_BYTES) {
        uint32_t size = 1 + any(sizeof piece);
        if (size > STREAM_BYTES - place)
            size = STREAM_BYTES - place;
        if (index % 2 == 0) {
            for (uint32_t i = 0; i < size; i++)
                piece[i] = byte_at(place + i, direction);
            ssize_t sent = write(pair[end], piece, size);
            MUST(sent > 0);
            place += (uint32_t)sent;
        } else {
            ssize_t got = read(pair[end], piece, size);
            MUST(got > 0);
            for (ssize_t i = 0; i < got; i++)
                if (piece[i] != byte_at(place + (uint32_t)i, direction)) {
                    violation("byte %u is wrong", place + (uint32_t)i);
                    _exit(1);
                }
            place += (uint32_t)got;
        }
    }
    count(STREAM_BYTES);
}

// Two ends of a connection over the loopback device. They end with a reset: no port is kept for a while.
static void connect_pair(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    struct linger linger = { 1, 0 };
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    MUST(listener >= 0 && bind(listener, (struct sockaddr *)&address, len) == 0 && listen(listener, 1) == 0);
    MUST(getsockname(listener, (struct sockaddr *)&address, &len) == 0);
    MUST((pair[0] = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
    MUST(connect(pair[0], (struct sockaddr *)&address, len) == 0);
    MUST((pair[1] = accept(listener, NULL, NULL)) >= 0);
    for (int i = 0; i < 2; i++)
        MUST(setsockopt(pair[i], SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0);
    close(listener);
}

static void streams_round(void)
{
    if (any(2))
        connect_pair();
    else
        MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    threads(4, talk);
    close(pair[0]);
    close(pair[1]);
}

// Messages keep their borders and, of one sender, their order.
static void send_or_receive(int index)
{
    struct message message;
    if (index < WRITERS) {
        for (uint32_t i = 0; i < MESSAGES; i++) {
            compose(&message, index, i);
            ssize_t sent;
            while ((sent = send(pair[1], &message, sizeof message, 0)) < 0 && errno == ENOBUFS)
                sched_yield();
            MUST(sent == sizeof message);
        }
        return;
    }
    uint32_t next[WRITERS] = { 0 };
    for (int i = 0; i < WRITERS * MESSAGES; i++) {
        ssize_t got = recv(pair[0], &message, sizeof message, 0);
        HOLDS(got == sizeof message && is_right(&message), "a message of %ld bytes is torn", (long)got);
        if (got != sizeof message || message.writer >= WRITERS)
            break;
        HOLDS(message.turn == next[message.writer], "message %u in place of %u", message.turn, next[message.writer]);
        next[message.writer] = message.turn + 1;
    }
}

static void packets_round(void)
{
    kind = any(2) ? SOCK_SEQPACKET : SOCK_DGRAM;
    MUST(socketpair(AF_UNIX, kind, 0, pair) == 0);
    threads(WRITERS + 1, send_or_receive);
    char byte;
    HOLDS(recv(pair[0], &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN, "a message is left");
    close(pair[0]);
    close(pair[1]);
    count(WRITERS * MESSAGES);
}

// Sends a descriptor with one byte.
static int pass(int socket, int fd)
{
    char byte = 'r', room[CMSG_SPACE(sizeof fd)] = { 0 };
    struct iovec piece = { &byte, 1 };
    struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    return sendmsg(socket, &message, 0) == 1 ? 0 : -1;
}

static int receive(int socket)
{
    char byte, room[CMSG_SPACE(sizeof(int))] = { 0 };
    struct iovec piece = { &byte, 1 };
    struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
    int fd = -1;
    if (recvmsg(socket, &message, 0) != 1)
        return -1;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return fd;
}

#define RIGHTS 20

// One makes pipes and passes their writing ends; the other writes a number into each and closes it.
static void pass_or_use(int index)
{
    for (int i = 0; i < RIGHTS; i++) {
        if (index == 0) {
            int passed[2], number = -1;
            MUST(pipe(passed) == 0 && pass(pair[0], passed[1]) == 0);
            close(passed[1]);
            HOLDS(read(passed[0], &number, sizeof number) == sizeof number && number == i, "number %d in place of %d", number, i);
            HOLDS(read(passed[0], &number, sizeof number) == 0, "a passed descriptor is still open");
            close(passed[0]);
        } else {
            int fd = receive(pair[1]);
            MUST(fd >= 0 && write(fd, &i, sizeof i) == sizeof i);
            close(fd);
        }
    }
}

static void rights_round(void)
{
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    if (any(2)) {
        processes(2, pass_or_use);
    } else {
        threads(2, pass_or_use);
    }
    // One that nobody takes is closed with the socket.
    int passed[2];
    char byte;
    MUST(pipe(passed) == 0 && pass(pair[0], passed[1]) == 0);
    close(passed[1]);
    close(pair[0]);
    close(pair[1]);
    HOLDS(read(passed[0], &byte, 1) == 0, "a descriptor in a closed socket is still open");
    close(passed[0]);
    count(RIGHTS);
}

#define CLIENTS 3
#define CALLS 10

static int listener;

static void serve_or_call(int index)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "listener" };
    for (int i = 0; i < CALLS * (index == 0 ? CLIENTS : 1); i++) {
        int number = index * 100 + i, answer = -1;
        if (index == 0) {
            int fd = accept(listener, NULL, NULL);
            MUST(fd >= 0 && read(fd, &number, sizeof number) == sizeof number);
            number = ~number;
            MUST(write(fd, &number, sizeof number) == sizeof number);
            close(fd);
        } else {
            int fd = socket(AF_UNIX, SOCK_STREAM, 0);
            MUST(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
            MUST(write(fd, &number, sizeof number) == sizeof number);
            HOLDS(read(fd, &answer, sizeof answer) == sizeof answer && answer == ~number, "answer %d to %d", answer, number);
            HOLDS(read(fd, &answer, sizeof answer) == 0, "a connection does not end");
            close(fd);
        }
    }
}

static void connections_round(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "listener" };
    MUST((listener = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);
    MUST(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 2) == 0);
    processes(1 + CLIENTS, serve_or_call);
    close(listener);
    MUST(unlink("listener") == 0);
    count(CLIENTS * CALLS);
}

#define LINES 40

static int master, slave;

static void type_or_read(int index)
{
    char line[16];
    for (int i = 0; i < LINES; i++) {
        int length = snprintf(line, sizeof line, "line %02d\n", i);
        if (index == 0) {
            MUST(write(master, line, length) == length);
        } else {
            char got[16] = "";
            ssize_t size = read(slave, got, sizeof got);
            HOLDS(size == length && memcmp(got, line, length) == 0, "a terminal read %ld bytes of \"%.8s\", not line %d", (long)size, got, i);
        }
    }
}

// Each has a terminal of its own, of which nobody else has the number.
static void terminals_of_one(int index)
{
    (void)index;
    int unlock = 0, number;
    char name[32];
    MUST((master = open("/dev/ptmx", O_RDWR | O_NOCTTY)) >= 0);
    MUST(ioctl(master, TIOCSPTLCK, &unlock) == 0 && ioctl(master, TIOCGPTN, &number) == 0);
    snprintf(name, sizeof name, "/dev/pts/%d", number);
    MUST((slave = open(name, O_RDWR | O_NOCTTY)) >= 0);
    struct termios settings;
    MUST(tcgetattr(slave, &settings) == 0);
    settings.c_lflag &= ~(tcflag_t)ECHO;
    MUST(tcsetattr(slave, TCSANOW, &settings) == 0);
    threads(2, type_or_read);
    close(slave);
    char byte;
    HOLDS(read(master, &byte, 1) == -1 && errno == EIO, "a terminal without a slave is not at its end");
    close(master);
    count(LINES);
}

static void terminals_round(void)
{
    processes(2, terminals_of_one);
}

const struct family channel_families[] = {
    { "pipes", pipes_round },
    { "stream-sockets", streams_round },
    { "packet-sockets", packets_round },
    { "passed-descriptors", rights_round },
    { "connections", connections_round },
    { "terminals", terminals_round },
    { NULL, NULL },
};
