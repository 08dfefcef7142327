// The process outside of the groups that has the other ends of some of what is in them.
#include "kills.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/sem.h>

struct link links[MOST_LINKS];
int link_count;

static const char *const link_names[] = { "pipe to outside", "pipe from outside", "stream", "datagram", "fifo", "terminal" };

static void set_nonblocking(int file) { fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_NONBLOCK); }

static void make_link(struct link *link)
{
    int ends[2], unlocked = 0, number = 0;
    char name[32];
    link->kind = any(LINK_KINDS);
    switch (link->kind) {
    case PIPE_TO_OUTSIDE:
        must(pipe(ends), "pipe");
        *link = (struct link){ link->kind, ends[1], ends[0] };
        break;
    case PIPE_FROM_OUTSIDE:
        must(pipe(ends), "pipe");
        *link = (struct link){ link->kind, ends[0], ends[1] };
        break;
    case STREAM:
    case DATAGRAM:
        must(socketpair(AF_UNIX, link->kind == STREAM ? SOCK_STREAM : SOCK_DGRAM, 0, ends), "socketpair");
        *link = (struct link){ link->kind, ends[0], ends[1] };
        break;
    case FIFO:
        must(mkfifo("/tmp/fifo", 0600), "mkfifo");
        must(link->outside = open("/tmp/fifo", O_RDONLY | O_NONBLOCK), "open of the FIFO");
        must(link->inside = open("/tmp/fifo", O_WRONLY | O_NONBLOCK), "open of the FIFO");
        unlink("/tmp/fifo");
        break;
    default:
        must(link->outside = open("/dev/ptmx", O_RDWR | O_NOCTTY), "ptmx");
        must(ioctl(link->outside, TIOCSPTLCK, &unlocked), "TIOCSPTLCK");
        must(ioctl(link->outside, TIOCGPTN, &number), "TIOCGPTN");
        snprintf(name, sizeof name, "/dev/pts/%d", number);
        must(link->inside = open(name, O_RDWR | O_NOCTTY), "open of the terminal");
    }
    set_nonblocking(link->inside);
    set_nonblocking(link->outside);
}

void make_links(int count)
{
    for (link_count = 0; link_count < count; link_count++)
        make_link(&links[link_count]);
}

int a_link_of(enum link_kind kind)
{
    for (int i = 0; i < link_count; i++)
        if (links[i].kind == kind)
            return i;
    return -1;
}

void close_inside(void)
{
    for (int i = 0; i < link_count; i++)
        close(links[i].inside);
}

static char content[1 << 20];
static int tell_checker, checker_asked;
static pid_t checker;

enum { IN_MESSAGE = 100 };

// A message with descriptors that are charged to nobody.
static void send_rights(int socket)
{
    struct {
        struct cmsghdr head;
        int files[IN_MESSAGE];
    } control = { .head = { .cmsg_len = CMSG_LEN(sizeof control.files), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
    for (int i = 0; i < IN_MESSAGE; i++)
        control.files[i] = eventfd(0, 0);
    struct iovec byte = { "", 1 };
    struct msghdr message = { .msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = control.head.cmsg_len };
    sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    for (int i = 0; i < IN_MESSAGE; i++)
        close(control.files[i]);
}

// What the group has to give up, though it has not made it.
static void give(const struct link *link)
{
    switch (link->kind) {
    case PIPE_FROM_OUTSIDE:
        if (any(2))
            fcntl(link->outside, F_SETPIPE_SZ, 1 << 20);
        (void)!write(link->outside, content, sizeof content);
        break;
    case STREAM:
    case DATAGRAM:
        for (uint32_t i = any(2) ? any(5) : 0; i > 0; i--)
            send_rights(link->outside);
        send(link->outside, content, any(65536), MSG_NOSIGNAL);
        break;
    case TERMINAL:
        (void)!write(link->outside, content, any(5000));
        break;
    default:
        break;
    }
}

// Waits for the end of what is inside.
static void watch(int with_poll)
{
    struct pollfd all[MOST_LINKS];
    struct epoll_event event;
    int set = epoll_create1(0);
    for (int i = 0; i < link_count; i++) {
        all[i] = (struct pollfd){ links[i].outside, 0, 0 };
        event = (struct epoll_event){ .events = EPOLLET };
        epoll_ctl(set, EPOLL_CTL_ADD, links[i].outside, &event);
    }
    for (;;)
        if (with_poll)
            poll(all, link_count, -1), pause();
        else
            epoll_wait(set, &event, 1, -1);
}

// Waits for semaphores that those inside raise, or give something back to when they end, again and again. It takes long to see whether it can go on.
static void wait_for_semaphores(void)
{
    enum { PAIRS = 100 };
    struct sembuf all[2 * PAIRS + 1];
    for (int i = 0; i < 2 * PAIRS; i++)
        all[i] = (struct sembuf){ 1, i % 2 ? -1 : 1, 0 };
    all[2 * PAIRS] = (struct sembuf){ 0, -1, 0 };
    while (semop(board->waited_for, all, 2 * PAIRS + 1) == 0)
        ;
    // Removed by one inside.
    for (;;)
        pause();
}

// Reads all that there is; gives 0 at the end, or -errno.
static long drain(int file)
{
    long length;
    while ((length = read(file, content, sizeof content)) > 0)
        ;
    return length < 0 ? -errno : 0;
}

// What is seen of the end that was inside.
struct seen {
    short events;
    long got, sent;
};

// Whether it is seen to be closed.
static int is_closed(const struct link *link, struct seen *seen)
{
    struct pollfd asked = { link->outside, POLLIN, 0 };
    seen->got = link->kind == PIPE_FROM_OUTSIDE ? 0 : drain(link->outside);
    seen->sent = link->kind == PIPE_TO_OUTSIDE || link->kind == FIFO ? -EPIPE : write(link->outside, "", 1) < 0 ? -errno : 0;
    seen->events = poll(&asked, 1, 0) == 1 ? asked.revents : 0;
    int is_told = seen->events & (POLLHUP | POLLERR);
    switch (link->kind) {
    case STREAM:
        return is_told && (seen->got == 0 || seen->got == -ECONNRESET) && seen->sent == -EPIPE;
    case DATAGRAM:
        return (seen->got == -EAGAIN || seen->got == -ECONNRESET) && seen->sent != 0 && seen->sent != -EAGAIN;
    case TERMINAL:
        // On Linux too, a master takes what nobody reads.
        return is_told && seen->got == -EIO;
    default:
        return is_told && seen->got == 0 && seen->sent == -EPIPE;
    }
}

static void check_link(const struct link *link, int index)
{
    struct seen seen;
    if (is_closed(link, &seen))
        return;
    struct seen first = seen;
    int tries = 0;
    while (++tries < 1000 && !is_closed(link, &seen))
        sleep_micros(1000);
    if (tries == 1000)
        violation("link %d, %s, is not closed: poll %#x, read %ld, write %ld", index, link_names[link->kind], seen.events, seen.got, seen.sent);
    else
        late("link %d, %s, is closed only %d ms later: first poll %#x, read %ld, write %ld", index, link_names[link->kind], tries, first.events,
             first.got, first.sent);
}

static void check_locks(void)
{
    int file = open(LOCKED_FILE, O_RDWR);
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    if (flock(file, LOCK_EX | LOCK_NB) < 0)
        violation("flock(2) after the kill: %s", strerror(errno));
    if (fcntl(file, F_SETLK, &whole) < 0)
        violation("a record lock after the kill: %s", strerror(errno));
}

// From linux/futex.h.
enum { OWNER_DIED = 0x40000000, OWNER = 0x3fffffff };

// So many of a thread's robust mutexes are marked where its end is charged to a budget: see cgroups.md.
enum { MOST_MARKED = 32 };

static void check_robust(void)
{
    int count = board->robust_locked < MOST_MARKED ? board->robust_locked : MOST_MARKED;
    for (int i = 0; i < count; i++) {
        uint32_t word = board->robust[i].word;
        if (!(word & OWNER_DIED) || (word & OWNER) != 0) {
            violation("robust mutex %d of %d: %#x", i, board->robust_locked, word);
            return;
        }
    }
}

static void check(void)
{
    // Descriptors of what was inside may be in messages for this process.
    for (int i = 0; i < link_count; i++)
        if (links[i].kind == STREAM || links[i].kind == DATAGRAM)
            drain(links[i].outside);
    for (int i = 0; i < link_count; i++)
        check_link(&links[i], i);
    check_locks();
    check_robust();
}

void start_checker(void)
{
    int asked[2];
    must(pipe2(asked, O_CLOEXEC), "pipe");
    must(board->waited_for = semget(IPC_PRIVATE, 2, 0600), "semget");
    must(checker = fork(), "fork of the checker");
    tell_checker = asked[1];
    checker_asked = asked[0];
    if (checker != 0) {
        close(checker_asked);
        for (int i = 0; i < link_count; i++)
            close(links[i].outside);
        while (!board->outside_ready)
            sleep_micros(100);
        return;
    }
    close(tell_checker);
    for (int i = 0; i < link_count; i++)
        if (any(3) == 0)
            give(&links[i]);
    close_inside();
    static pid_t watchers[200];
    int at_semaphores = once_in(6);
    int count = at_semaphores ? 1 + any(200) : once_in(3) ? 1 + any(once_in(8) ? 200 : 8) : 0;
    for (int i = 0; i < count; i++)
        if ((watchers[i] = fork()) == 0) {
            close(checker_asked);
            if (at_semaphores)
                wait_for_semaphores();
            watch(any(2));
        }
    board->outside_ready = 1;
    char byte;
    (void)!read(checker_asked, &byte, 1);
    check();
    for (int i = 0; i < count; i++)
        if (watchers[i] > 0) {
            kill(watchers[i], SIGKILL);
            waitpid(watchers[i], NULL, 0);
        }
    _exit(0);
}

void finish_checker(void)
{
    int status = 0;
    (void)!write(tell_checker, "", 1);
    close(tell_checker);
    must(waitpid(checker, &status, 0), "wait for the checker");
    semctl(board->waited_for, 0, IPC_RMID);
    if (status != 0)
        violation("the checker ended with %#x", status);
}
