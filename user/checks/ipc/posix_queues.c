// Message queues of POSIX: mq_open, mq_send, mq_receive, mq_notify, mq_getattr, mq_setattr, mq_unlink, the files of mqueue, and limits.
#include "../state.h"
#include "own.h"
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define NAME "/ebb-check"

static mqd_t queue;
static char buffer[9000];

static mqd_t make(long messages, long bytes, int flags)
{
    struct mq_attr size = { .mq_maxmsg = messages, .mq_msgsize = bytes };
    return mq_open(NAME, O_CREAT | flags, 0644, &size);
}

static long put(const char *text, unsigned priority) { return mq_send(queue, text, strlen(text), priority); }

static void take(const char *name)
{
    unsigned priority = 77;
    memset(buffer, 0, sizeof buffer);
    long len = mq_receive(queue, buffer, sizeof buffer, &priority);
    if (len < 0)
        check_result(name, len, errno);
    else
        check_line("%s: %ld bytes of priority %u: %s\n", name, len, priority, buffer);
}

static void show(const char *name)
{
    struct mq_attr now;
    REQUIRE(mq_getattr(queue, &now) == 0);
    check_line("%s: %s, %ld messages of %ld, %ld bytes\n", name, now.mq_flags & O_NONBLOCK ? "non-blocking" : "blocking", now.mq_curmsgs, now.mq_maxmsg,
               now.mq_msgsize);
}

// How a child ends that makes one call: what that returns, or 100 and the error.
static void end(long result) { _exit(result < 0 ? 100 + errno : result); }

static struct timespec in_ms(long ms)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_nsec += ms * 1000000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static mqd_t closed;
static long received;

static void *receive(void *_)
{
    (void)_;
    char text[16];
    received = mq_receive(closed, text, sizeof text, NULL);
    return NULL;
}

static void *send_more(void *_)
{
    (void)_;
    received = mq_send(closed, "more", 4, 0);
    return NULL;
}

// Whether its call ended with the descriptor differs (on Linux it goes on); that what is sent is there once does not.
static void closing(void)
{
    struct timespec soon;
    queue = make(1, 16, O_RDWR);
    closed = mq_open(NAME, O_RDWR);
    pthread_t thread;
    REQUIRE(queue >= 0 && closed >= 0 && pthread_create(&thread, NULL, receive, NULL) == 0);
    check_sleep_ms(50);
    mq_close(closed);
    check_sleep_ms(50);
    REQUIRE(put("text", 1) == 0);
    check_sleep_ms(50);
    soon = in_ms(20);
    long own = mq_timedreceive(queue, buffer, sizeof buffer, NULL, &soon);
    pthread_join(thread, NULL);
    CHECK_TRUE("one has the message", (received == 4) != (own == 4));

    closed = mq_open(NAME, O_RDWR);
    REQUIRE(closed >= 0 && put("full", 1) == 0 && pthread_create(&thread, NULL, send_more, NULL) == 0);
    check_sleep_ms(50);
    mq_close(closed);
    check_sleep_ms(50);
    take("first");
    check_sleep_ms(50);
    soon = in_ms(20);
    own = mq_timedreceive(queue, buffer, sizeof buffer, NULL, &soon);
    pthread_join(thread, NULL);
    CHECK_TRUE("what was sent is there, and nothing else", (received == 0) == (own == 4));
    REQUIRE(mq_close(queue) == 0 && mq_unlink(NAME) == 0);
}

static int times_told, told_code, told_value, told_by;

static void on_told(int number, siginfo_t *info, void *_)
{
    (void)number;
    (void)_;
    times_told++;
    told_code = info->si_code;
    told_value = info->si_value.sival_int;
    told_by = info->si_pid;
}

static void on_alarm(int number) { (void)number; }

static void names(void)
{
    char long_name[300];
    memset(long_name, 'x', sizeof long_name);
    long_name[0] = '/';
    long_name[257] = 0;
    CHECK("no such queue", mq_open(NAME, O_RDONLY));
    CHECK("empty name", syscall(SYS_mq_open, "", O_RDONLY, 0, NULL));
    CHECK("a dot", syscall(SYS_mq_open, ".", O_RDONLY, 0, NULL));
    CHECK("two dots", syscall(SYS_mq_open, "..", O_RDONLY | O_CREAT, 0600, NULL));
    CHECK("a slash in it", syscall(SYS_mq_open, "a/b", O_RDONLY | O_CREAT, 0600, NULL));
    CHECK("too long", syscall(SYS_mq_open, long_name + 1, O_RDONLY | O_CREAT, 0600, NULL));
    long_name[256] = 0;
    CHECK_TRUE("as long as may be", (queue = mq_open(long_name, O_RDWR | O_CREAT, 0600, NULL)) >= 0);
    CHECK("closed", mq_close(queue));
    CHECK("unlinked", mq_unlink(long_name));
    CHECK("unlinked again", mq_unlink(long_name));
    CHECK("bad pointer to a name", syscall(SYS_mq_open, BAD_POINTER, O_RDONLY, 0, NULL));
    CHECK("bad pointer to attributes", syscall(SYS_mq_open, "ebb-check", O_RDWR | O_CREAT, 0600, BAD_POINTER));
    CHECK("no messages", make(0, 10, O_RDWR));
    CHECK("no bytes", make(10, 0, O_RDWR));
    CHECK("fewer than none", make(-1, 10, O_RDWR));
    CHECK("more than anybody has", make(65537, 1, O_RDWR));
    CHECK("longer than anybody has", make(1, (16 << 20) + 1, O_RDWR));
}

static void messages(void)
{
    queue = make(4, 16, O_RDWR);
    REQUIRE(queue >= 0);
    show("new");
    CHECK("exclusive", make(4, 16, O_RDWR | O_EXCL));
    CHECK("closes with exec", fcntl(queue, F_GETFD));
    CHECK("flags", fcntl(queue, F_GETFL) & (O_ACCMODE | O_NONBLOCK));
    struct stat status;
    REQUIRE(fstat(queue, &status) == 0);
    check_line("status: mode %o, %ld bytes, %ld links\n", status.st_mode, (long)status.st_size, (long)status.st_nlink);
    CHECK("low", put("low", 1));
    CHECK("high", put("high", 9));
    CHECK("low too", put("low too", 1));
    CHECK("higher", put("higher", 10));
    show("full");
    take("first");
    take("second");
    take("third");
    CHECK("empty message", put("", 0));
    take("fourth");
    take("fifth");
    CHECK("highest priority", put("x", 32767));
    CHECK("priority too high", put("x", 32768));
    CHECK("too long", mq_send(queue, buffer, 17, 0));
    CHECK("room for less than may come", mq_receive(queue, buffer, 15, NULL));
    CHECK("bad text", mq_send(queue, BAD_POINTER, 5, 0));
    take("the highest");

    struct mq_attr flags = { .mq_flags = O_NONBLOCK, .mq_maxmsg = 99 };
    CHECK("not to wait", mq_setattr(queue, &flags, NULL));
    show("set");
    flags.mq_flags = O_APPEND;
    CHECK("another flag", mq_setattr(queue, &flags, NULL));
    take("none");
    for (int i = 0; i < 4; i++)
        REQUIRE(put("fill", 3) == 0);
    CHECK("full", put("more", 3));
    struct pollfd ready = { queue, POLLIN | POLLOUT, 0 };
    CHECK("poll of a full queue", poll(&ready, 1, 0));
    CHECK("events", ready.revents);
    take("one less");
    CHECK("poll of a queue", poll(&ready, 1, 0));
    CHECK("events", ready.revents);
    while (mq_receive(queue, buffer, sizeof buffer, NULL) >= 0)
        ;
    CHECK("poll of an empty queue", poll(&ready, 1, 0));
    CHECK("events", ready.revents);

    mqd_t reader = mq_open(NAME, O_RDONLY), writer = mq_open(NAME, O_WRONLY | O_NONBLOCK);
    CHECK("send by who reads", mq_send(reader, "x", 1, 0));
    CHECK("receive by who writes", mq_receive(writer, buffer, sizeof buffer, NULL));
    CHECK("send by who writes", mq_send(writer, "x", 1, 0));
    CHECK("receive by who reads", mq_receive(reader, buffer, sizeof buffer, NULL));
    CHECK("both at once", mq_open(NAME, O_RDWR | O_WRONLY));
    CHECK("no queue", mq_send(0, "x", 1, 0));
    CHECK("no descriptor", mq_send(999, "x", 1, 0));
    CHECK("attributes of another file", syscall(SYS_mq_getsetattr, 1, NULL, NULL));
    CHECK("attributes to nowhere", syscall(SYS_mq_getsetattr, queue, NULL, BAD_POINTER));
    CHECK("read of the descriptor", read(writer, buffer, 10));
    CHECK("write to the descriptor", write(writer, "x", 1));
    REQUIRE(mq_close(reader) == 0 && mq_close(writer) == 0 && mq_close(queue) == 0);
    CHECK("unlink", mq_unlink(NAME));
}

static void waiting(void)
{
    queue = make(2, 16, O_RDWR);
    REQUIRE(queue >= 0);
    struct timespec past = { 1, 0 }, bad = { 1, 1000000000 }, negative = { -1, 0 }, soon;
    CHECK("receive in the past", mq_timedreceive(queue, buffer, sizeof buffer, NULL, &past));
    CHECK("bad time", mq_timedreceive(queue, buffer, sizeof buffer, NULL, &bad));
    CHECK("negative time", mq_timedreceive(queue, buffer, sizeof buffer, NULL, &negative));
    soon = in_ms(20);
    CHECK("receive in time", mq_timedreceive(queue, buffer, sizeof buffer, NULL, &soon));
    CHECK("a message", put("here", 1));
    CHECK("receive at once", mq_timedreceive(queue, buffer, sizeof buffer, NULL, &past));
    REQUIRE(put("one", 1) == 0 && put("two", 2) == 0);
    soon = in_ms(20);
    CHECK("send in time", mq_timedsend(queue, "three", 5, 3, &soon));
    show("still");

    // Who waits to send is let in, in turn, and what it sends is received by priority.
    pid_t first = check_fork();
    if (first == 0)
        end(put("first", 3));
    check_waits(first);
    pid_t second = check_fork();
    if (second == 0)
        end(put("second", 4));
    check_waits(second);
    take("two before one");
    CHECK_STATUS("first sender", check_wait(first));
    take("first");
    CHECK_STATUS("second sender", check_wait(second));
    take("second");
    take("one");

    // Who waits to receive has what comes, in turn.
    pid_t receivers[3];
    for (int i = 0; i < 3; i++) {
        receivers[i] = check_fork();
        if (receivers[i] == 0) {
            unsigned priority = 0;
            long len = mq_receive(queue, buffer, sizeof buffer, &priority);
            end(len < 0 ? len : len + priority);
        }
        check_waits(receivers[i]);
    }
    REQUIRE(put("a", 10) == 0 && put("aa", 20) == 0 && put("aaa", 30) == 0);
    for (int i = 0; i < 3; i++)
        CHECK_STATUS("receiver", check_wait(receivers[i]));
    show("all taken");

    // A handler ends a wait, unless it restarts calls.
    struct sigaction action = { .sa_handler = on_alarm };
    sigaction(SIGUSR1, &action, NULL);
    pid_t child = check_fork();
    if (child == 0)
        end(mq_receive(queue, buffer, sizeof buffer, NULL));
    check_waits(child);
    kill(child, SIGUSR1);
    CHECK_STATUS("interrupted", check_wait(child));
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, NULL);
    child = check_fork();
    if (child == 0)
        end(mq_receive(queue, buffer, sizeof buffer, NULL));
    check_waits(child);
    kill(child, SIGUSR1);
    check_sleep_ms(20);
    kill(child, SIGSTOP);
    int status;
    REQUIRE(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    kill(child, SIGCONT);
    check_waits(child);
    REQUIRE(put("restarted", 1) == 0);
    CHECK_STATUS("restarted", check_wait(child));
    child = check_fork();
    if (child == 0)
        end(mq_receive(queue, buffer, sizeof buffer, NULL));
    check_waits(child);
    kill(child, SIGKILL);
    CHECK_STATUS("killed", check_wait(child));
    CHECK("not for who was killed", put("kept", 1));
    take("kept");
    REQUIRE(mq_close(queue) == 0 && mq_unlink(NAME) == 0);
}

static void telling(void)
{
    queue = make(4, 16, O_RDWR);
    mqd_t other = mq_open(NAME, O_RDWR);
    struct sigaction action = { .sa_sigaction = on_told, .sa_flags = SA_SIGINFO | SA_RESTART };
    sigaction(SIGUSR1, &action, NULL);
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 42 };
    CHECK("take back what is not there", mq_notify(queue, NULL));
    CHECK("to be told", mq_notify(queue, &event));
    CHECK("twice", mq_notify(other, &event));
    pid_t child = check_fork();
    if (child == 0) {
        CHECK("by another", mq_notify(other, &event));
        CHECK("of another", mq_notify(other, NULL));
        end(put("x", 0));
    }
    CHECK_STATUS("sender", check_wait(child));
    CHECK("told", times_told);
    CHECK_TRUE("by a message", told_code == SI_MESGQ);
    CHECK("value", told_value);
    CHECK_TRUE("of the sender", told_by == child);
    CHECK("to be told again", mq_notify(queue, &event));
    REQUIRE(put("y", 0) == 0);
    CHECK("not while there were some", times_told);
    take("x");
    take("y");
    REQUIRE(put("z", 0) == 0);
    CHECK("told again", times_told);
    take("z");
    REQUIRE(put("z", 0) == 0);
    CHECK("only once", times_told);
    take("z");

    CHECK("to be told", mq_notify(queue, &event));
    child = check_fork();
    if (child == 0)
        end(mq_receive(queue, buffer, sizeof buffer, NULL));
    check_waits(child);
    REQUIRE(put("yours", 0) == 0);
    CHECK_STATUS("who waited", check_wait(child));
    CHECK("not told of what was waited for", times_told);
    CHECK("another descriptor closed", mq_close(other));
    REQUIRE(put("w", 0) == 0);
    CHECK("not told any more", times_told);
    take("w");
    event.sigev_notify = SIGEV_NONE;
    CHECK("nothing", mq_notify(queue, &event));
    CHECK("twice", mq_notify(queue, &event));
    CHECK("taken back", mq_notify(queue, NULL));
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = 65;
    CHECK("no such signal", mq_notify(queue, &event));
    event.sigev_notify = 99;
    CHECK("no such way", mq_notify(queue, &event));
    event.sigev_notify = SIGEV_NONE;
    CHECK("no queue", syscall(SYS_mq_notify, 1, &event));
    CHECK("bad pointer", syscall(SYS_mq_notify, queue, BAD_POINTER));

    // As a library does it that calls a function: bytes come to a netlink socket.
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    char cookie[32] = "cookie";
    struct sigevent thread = { .sigev_notify = SIGEV_THREAD, .sigev_signo = ends[0], .sigev_value.sival_ptr = cookie };
    CHECK("no socket", syscall(SYS_mq_notify, queue, &thread));
    thread.sigev_signo = socket(AF_NETLINK, SOCK_RAW, 0);
    REQUIRE(thread.sigev_signo >= 0);
    thread.sigev_value.sival_ptr = BAD_POINTER;
    CHECK("bad cookie", syscall(SYS_mq_notify, queue, &thread));
    thread.sigev_value.sival_ptr = cookie;
    CHECK("a socket", syscall(SYS_mq_notify, queue, &thread));
    REQUIRE(put("v", 0) == 0);
    CHECK("bytes come", recv(thread.sigev_signo, buffer, sizeof buffer, 0));
    check_line("they are: %s %d\n", buffer, buffer[31]);
    take("v");
    CHECK("a socket", syscall(SYS_mq_notify, queue, &thread));
    CHECK("taken back", mq_notify(queue, NULL));
    CHECK("bytes come", recv(thread.sigev_signo, buffer, sizeof buffer, 0));
    check_line("they are: %s %d\n", buffer, buffer[31]);
    CHECK("to be told", mq_notify(queue, &(struct sigevent){ .sigev_notify = SIGEV_NONE }));
    REQUIRE(mq_close(queue) == 0 && mq_unlink(NAME) == 0);
}

static void show_file(const char *name)
{
    FILE *file = fopen("dir/ebb-check", "r");
    int size = -1, how = -1, signal = -1, pid = -1;
    REQUIRE(file && fscanf(file, "QSIZE:%d NOTIFY:%d SIGNO:%d NOTIFY_PID:%d", &size, &how, &signal, &pid) == 4);
    check_line("%s: %d bytes, told %d by %d%s\n", name, size, how, signal, pid == getpid() ? ", this process" : pid ? ", another" : "");
    fclose(file);
}

static void files(void)
{
    REQUIRE(mkdir("dir", 0755) == 0);
    CHECK("mount", mount("mqueue", "dir", "mqueue", 0, NULL));
    struct stat status;
    REQUIRE(stat("dir", &status) == 0);
    check_line("directory: mode %o\n", status.st_mode);
    queue = make(4, 16, O_RDWR);
    REQUIRE(put("12345", 1) == 0);
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    show_file("file");
    REQUIRE(mq_notify(queue, &event) == 0);
    show_file("file");
    take("the message");
    show_file("file");
    REQUIRE(stat("dir/ebb-check", &status) == 0);
    check_line("file: mode %o, %ld bytes\n", status.st_mode, (long)status.st_size);
    CHECK("mkdir", mkdir("dir/x", 0755));
    CHECK("mknod", mknod("dir/x", S_IFIFO | 0600, 0));
    CHECK("symlink", symlink("x", "dir/x"));
    CHECK("link", link("dir/ebb-check", "dir/x"));
    CHECK("rename", rename("dir/ebb-check", "dir/x"));
    int made = open("dir/made", O_CREAT | O_RDWR, 0600);
    CHECK_TRUE("made by open", made >= 0);
    struct mq_attr size;
    REQUIRE(mq_getattr(made, &size) == 0);
    check_line("its size: %ld of %ld\n", size.mq_maxmsg, size.mq_msgsize);
    CHECK("send to it", mq_send(made, "x", 1, 0));
    CHECK("found by its name", mq_open("/made", O_RDONLY | O_CREAT | O_EXCL, 0600, NULL));
    CHECK("unlinked as a file", unlink("dir/made"));
    CHECK("and gone", mq_unlink("/made"));
    CHECK("unlinked as a queue", mq_unlink(NAME));
    CHECK("and gone", access("dir/ebb-check", F_OK));
    CHECK("still there", put("x", 0));
    close(made);
    REQUIRE(mq_close(queue) == 0);
    CHECK("umount", umount("dir"));
}

static void limits(void)
{
    static const char *const settings[] = { "queues_max", "msg_max", "msgsize_max", "msg_default", "msgsize_default" };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        char path[80], value[20] = "";
        snprintf(path, sizeof path, "/proc/sys/fs/mqueue/%s", settings[i]);
        int file = open(path, O_RDWR);
        REQUIRE(file >= 0 && read(file, value, sizeof value - 1) > 0);
        check_line("%s: %s", settings[i], value);
        CHECK("less than may be", pwrite(file, "0", 1, 0));
        CHECK("more than may be", pwrite(file, "2147483648", 10, 0));
        CHECK("as it was", pwrite(file, value, strlen(value), 0));
        close(file);
    }
    struct rlimit few = { 2 * (48 + 48 + 100), 819200 };
    REQUIRE(setrlimit(RLIMIT_MSGQUEUE, &few) == 0);
    CHECK("more than the limit", make(3, 100, O_RDWR));
    CHECK_TRUE("as much as the limit", (queue = make(2, 100, O_RDWR)) >= 0);
    CHECK("one byte more", mq_open("/ebb-other", O_CREAT | O_RDWR, 0600, &(struct mq_attr){ .mq_maxmsg = 1, .mq_msgsize = 1 }));
    REQUIRE(mq_unlink(NAME) == 0);
    CHECK("while it is open", make(2, 100, O_RDWR));
    mq_close(queue);
    CHECK_SOON("once it is closed", (queue = make(2, 100, O_RDWR)) >= 0);
    REQUIRE(mq_close(queue) == 0 && mq_unlink(NAME) == 0);
    few.rlim_cur = few.rlim_max;
    REQUIRE(setrlimit(RLIMIT_MSGQUEUE, &few) == 0);
    CHECK_CHILD("another user", {
        REQUIRE(setgid(4000) == 0 && setuid(4000) == 0);
        CHECK("more messages than is usual", make(11, 10, O_RDWR));
        CHECK("longer than is usual", make(1, 8193, O_RDWR));
        umask(0);
        queue = make(2, 10, O_RDWR);
        REQUIRE(queue >= 0);
    });
    queue = mq_open("/ebb-roots", O_CREAT | O_RDWR, 0600, NULL);
    REQUIRE(queue >= 0);
    CHECK_CHILD("a third user", {
        REQUIRE(setgid(4001) == 0 && setuid(4001) == 0);
        CHECK("read of what all may read", mq_open(NAME, O_RDONLY) >= 0 ? 0 : -1);
        CHECK("write to it", mq_open(NAME, O_WRONLY));
        CHECK("unlink of it", mq_unlink(NAME));
        CHECK("read of what nobody may", mq_open("/ebb-roots", O_RDONLY));
    });
    CHECK("unlink", mq_unlink(NAME));
    CHECK("unlink", mq_unlink("/ebb-roots"));
}

int main(void)
{
    own_objects();
    names();
    messages();
    waiting();
    closing();
    telling();
    files();
    limits();
    return 0;
}
