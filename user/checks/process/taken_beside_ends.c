// pidfd_getfd(2) beside what its target does: closing, ending, executing a program with more rights, and descriptors that are in messages.
#include "../check.h"
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

static volatile struct {
    pid_t target;
    long taken, wrong, end;
    ino_t secret;
} *shared;

static int open_process(pid_t pid)
{
    return syscall(SYS_pidfd_open, pid, 0);
}

static int take(int process, int fd)
{
    return syscall(SYS_pidfd_getfd, process, fd, 0);
}

// A target that opens and closes, and ends; what is taken is one of its two files.
static void closes_and_ends(void)
{
    int wrong = 0;
    for (int round = 0; round < 60; round++) {
        int taken = 0;
        shared->target = 0;
        pid_t child = check_fork();
        if (child == 0) {
            for (int i = 0; i < 50 || !shared->target; i++) {
                int one = open("one", O_RDONLY), other = open("two", O_RDONLY);
                sched_yield();
                close(one);
                close(other);
            }
            _exit(0);
        }
        int process = open_process(child);
        REQUIRE(process >= 0);
        for (;;) {
            errno = 0;
            int fd = take(process, process + round % 2);
            if (fd < 0 && errno == ESRCH)
                break;
            if (fd < 0) {
                wrong += errno != EBADF;
                continue;
            }
            char letter;
            // Its last files may be open until it has ended.
            if (++taken == 20)
                shared->target = child;
            wrong += pread(fd, &letter, 1, 0) != 1 || (letter != '1' && letter != '2');
            close(fd);
        }
        close(process);
        check_wait(child);
    }
    CHECK("closes-and-ends-wrong", wrong);
}

// A program with the rights of its owner opens what only that may read.
static void executes(void)
{
    pid_t runner = check_fork();
    if (runner == 0) {
        REQUIRE(setgid(1000) == 0 && setuid(1000) == 0);
        for (int i = 0; i < 150; i++) {
            pid_t pid = fork();
            if (pid == 0) {
                prctl(PR_SET_DUMPABLE, 1);
                execl("./owned", "owned", "secret", NULL);
                _exit(1);
            }
            shared->target = pid;
            int status;
            if (waitpid(pid, &status, 0) != pid || status != 0)
                __sync_fetch_and_add(&shared->wrong, 1);
        }
        shared->end = 1;
        _exit(0);
    }
    pid_t taker = check_fork();
    if (taker == 0) {
        REQUIRE(setgid(1000) == 0 && setuid(1000) == 0);
        while (!shared->end) {
            int process = open_process(shared->target);
            if (process < 0)
                continue;
            for (int tries = 0; tries < 200 && !shared->end; tries++) {
                errno = 0;
                int fd = take(process, 7);
                if (fd < 0 && errno == ESRCH)
                    break;
                struct stat status;
                if (fd >= 0 && fstat(fd, &status) == 0 && status.st_ino == shared->secret)
                    shared->taken++;
                if (fd >= 0)
                    close(fd);
            }
            close(process);
        }
        _exit(0);
    }
    CHECK("runner", check_wait(runner));
    CHECK("taker", check_wait(taker));
    CHECK("executed-wrong", shared->wrong);
    CHECK("secrets-taken", shared->taken);
}

static void send_fd(int to, int fd)
{
    char byte = 'm', room[CMSG_SPACE(sizeof fd)] = { 0 };
    struct iovec part = { &byte, 1 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    REQUIRE(sendmsg(to, &message, 0) == 1);
}

static int receive_fd(int from)
{
    char byte, room[CMSG_SPACE(sizeof(int))];
    struct iovec part = { &byte, 1 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
    int fd = -1;
    if (recvmsg(from, &message, MSG_DONTWAIT) == 1 && CMSG_FIRSTHDR(&message))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

// A socket that waits in a message to itself, and is nobody's but for who takes it meanwhile.
static void in_messages(void)
{
    int wrong = 0;
    for (int round = 0; round < 40; round++) {
        int told[2], go[2], ends[2];
        REQUIRE(pipe(told) == 0 && pipe(go) == 0);
        pid_t child = check_fork();
        if (child == 0) {
            REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
            send_fd(ends[0], ends[1]);
            // With what stands for itself.
            send_fd(ends[0], open_process(getpid()));
            REQUIRE(write(told[1], ends, sizeof ends) == sizeof ends);
            char byte;
            REQUIRE(read(go[0], &byte, 1) == 1);
            // Others that have no owner, so that they are looked for. They have numbers of their own: under that of the first one nothing else is taken.
            int more[3][2];
            for (int i = 0; i < 3; i++)
                REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, more[i]) == 0);
            close(ends[1]);
            close(ends[0]);
            for (int i = 0; i < 3; i++) {
                send_fd(more[i][0], more[i][1]);
                close(more[i][0]);
                close(more[i][1]);
            }
            _exit(0);
        }
        int process = open_process(child);
        REQUIRE(read(told[0], ends, sizeof ends) == sizeof ends);
        if (round % 2)
            REQUIRE(write(go[1], "g", 1) == 1);
        int socket = take(process, ends[1]);
        if (round % 2 == 0)
            REQUIRE(write(go[1], "g", 1) == 1);
        check_wait(child);
        if (socket >= 0) {
            int again = receive_fd(socket), about = receive_fd(again);
            struct stat one, other;
            wrong += again < 0 || fstat(socket, &one) != 0 || fstat(again, &other) != 0 || one.st_ino != other.st_ino;
            errno = 0;
            wrong += about < 0 || take(about, 0) != -1 || errno != ESRCH;
            char byte;
            wrong += read(socket, &byte, 1) != 0;
            close(again);
            close(about);
            close(socket);
        } else {
            wrong += round % 2 == 0;
        }
        close(process);
        for (int i = 0; i < 2; i++) {
            close(told[i]);
            close(go[i]);
        }
    }
    // Linux may look for sockets without an owner just as one is taken, and throw its messages away: seen in one run of ten.
    CHECK("in-messages-wrong", is_ebb() ? wrong : 0);
}

int main(int count, char **arguments)
{
    if (count > 1) {
        // The program with more rights.
        int fd = open(arguments[1], O_RDONLY);
        if (fd < 0 || dup2(fd, 7) != 7)
            return 2;
        for (volatile int i = 0; i < 20000; i++)
            ;
        return 0;
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    for (int i = 0; i < 2; i++) {
        int fd = open(i ? "two" : "one", O_CREAT | O_WRONLY, 0600);
        REQUIRE(fd >= 0 && write(fd, i ? "2222" : "1111", 4) == 4);
        close(fd);
    }
    int secret = open("secret", O_CREAT | O_RDWR, 0600);
    struct stat status;
    REQUIRE(secret >= 0 && fstat(secret, &status) == 0);
    shared->secret = status.st_ino;
    close(secret);
    int from = open("/proc/self/exe", O_RDONLY), to = open("owned", O_CREAT | O_WRONLY, 0755);
    char bytes[65536];
    for (ssize_t len; (len = read(from, bytes, sizeof bytes)) > 0;)
        REQUIRE(write(to, bytes, len) == len);
    REQUIRE(fchmod(to, 04755) == 0 && chmod(".", 0755) == 0);
    close(from);
    close(to);

    closes_and_ends();
    executes();
    in_messages();
    return 0;
}
