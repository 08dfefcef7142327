// The controller reclaim: how long the end of a group may take. Linux has none, so each fact is written down with what it must be.
#include "../cgroup.h"
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

// What a workload has made when it was refused one more, and with which error.
struct outcome {
    int made, error;
};

static int pipes[4096][2];

static int make_pipe(int nth) { return pipe(pipes[nth]); }
static int make_pair(int nth) { return socketpair(AF_UNIX, SOCK_STREAM, 0, pipes[nth]); }
static int make_event(int nth) { return pipes[nth][0] = eventfd(0, 0); }
static int make_set(int nth) { return pipes[nth][0] = epoll_create1(0); }
static int duplicate(int nth) { return pipes[nth][0] = dup(0); }
static int open_file(int nth) { return pipes[nth][0] = open("file", O_RDWR | O_CREAT, 0600); }

static int watch(int nth)
{
    static int set, many;
    if (nth == 0) {
        set = epoll_create1(0);
        many = eventfd(0, 0);
    }
    // Each has a descriptor of its own, of one file, and so an item.
    int fd = fcntl(many, F_DUPFD, 16);
    struct epoll_event event = { .events = EPOLLIN };
    if (fd < 0)
        return -1;
    int added = epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
    return added;
}

static int map_file(int nth)
{
    static int file;
    if (nth == 0)
        file = open("mapped", O_RDWR | O_CREAT, 0600);
    return mmap(NULL, 4096, PROT_READ, nth % 2 ? MAP_SHARED : MAP_PRIVATE, file, 0) == MAP_FAILED ? -1 : 0;
}

static int split_mapping(int nth)
{
    static char *mapping;
    if (nth == 0) {
        int file = open("mapped", O_RDWR | O_CREAT, 0600);
        mapping = mmap(NULL, 4096L * 20000, PROT_READ, MAP_SHARED, file, 0);
    }
    return mprotect(mapping + 4096L * (2 * nth + 1), 4096, PROT_READ | PROT_WRITE);
}

static int make_timer(int nth)
{
    (void)nth;
    timer_t timer;
    struct sigevent nobody = { .sigev_notify = SIGEV_NONE };
    return timer_create(CLOCK_MONOTONIC, &nobody, &timer);
}

static void *wait_for_ever(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static int make_thread(int nth)
{
    (void)nth;
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    errno = pthread_create(&thread, &attributes, wait_for_ever, NULL);
    return errno ? -1 : 0;
}

static int make_process(int nth)
{
    (void)nth;
    pid_t child = fork();
    if (child == 0)
        wait_for_ever(NULL);
    return child < 0 ? -1 : 0;
}

// A descriptor goes into a socket, and nobody receives it.
static int send_descriptor(int nth)
{
    static int ends[4096][2];
    if (nth % 64 == 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, ends[nth / 64]) < 0)
        return -1;
    char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0;
    struct iovec data = { &byte, 1 };
    struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &ends[0][0], sizeof(int));
    return sendmsg(ends[nth / 64][0], &message, MSG_DONTWAIT) < 0 ? -1 : 0;
}

// 64 events that nobody reads, until there is no room for any.
static int make_events(int nth)
{
    static int queue, watched, file;
    if (nth == 0) {
        queue = inotify_init1(0);
        file = open("file", O_RDWR | O_CREAT, 0600);
        watched = inotify_add_watch(queue, "file", IN_MODIFY | IN_ATTRIB);
    }
    int before = 0, now = 0;
    ioctl(queue, FIONREAD, &before);
    for (int i = 0; i < 32; i++)
        REQUIRE(watched > 0 && write(file, "x", 1) == 1 && fchmod(file, 0600) == 0);
    ioctl(queue, FIONREAD, &now);
    errno = ENOBUFS;
    return now - before == 64 * (int)sizeof(struct inotify_event) ? 0 : -1;
}

// Begins a process in the group that makes as many things as it can and stays; what came of it.
static struct outcome fill(const char *group, int (*make)(int), int most)
{
    int result[2];
    REQUIRE(pipe(result) == 0);
    if (check_fork() == 0) {
        struct rlimit descriptors = { 65536, 65536 };
        setrlimit(RLIMIT_NOFILE, &descriptors);
        char file[64];
        snprintf(file, sizeof file, "%s/cgroup.procs", group);
        REQUIRE(strcmp(put(file, "0"), "ok") == 0);
        struct outcome outcome = { 0, 0 };
        while (outcome.made < most && make(outcome.made) >= 0)
            outcome.made++;
        outcome.error = outcome.made < most ? errno : 0;
        (void)!write(result[1], &outcome, sizeof outcome);
        wait_for_ever(NULL);
    }
    struct outcome outcome = { -1, 0 };
    REQUIRE(read(result[0], &outcome, sizeof outcome) == sizeof outcome);
    close(result[0]);
    close(result[1]);
    return outcome;
}

static long number_in(const char *path) { return atol(get(path)); }

// How many objects of a class are charged, in a file with two numbers behind each name.
static long count_of(const char *group, const char *class)
{
    char file[64];
    snprintf(file, sizeof file, "%s/reclaim.stat", group);
    return field(file, class);
}

static const char *yes(int condition) { return condition ? "yes" : "no"; }

// A class in a group with a bound: it ends where the bound is, with the error; the group's end gives all back.
static void check_class(const char *name, const char *class, int (*make)(int), int error)
{
    char text[96];
    long empty = usable ? number_in("a/reclaim.current") : 0;
    long denied = usable ? field("a/reclaim.events", "denied") : 0;
    struct outcome outcome = { 0, error };
    DO(outcome = fill("a", make, 4000));
    snprintf(text, sizeof text, "%s: refused with", name);
    EXPECT(text, check_errno_name(error), outcome.error ? check_errno_name(outcome.error) : "nothing");
    snprintf(text, sizeof text, "%s: some were made before", name);
    EXPECT(text, "yes", yes(outcome.made > 10));
    snprintf(text, sizeof text, "%s: the bound holds", name);
    EXPECT(text, "yes", yes(number_in("a/reclaim.current") <= number_in("a/reclaim.max")));
    snprintf(text, sizeof text, "%s: they are counted", name);
    EXPECT(text, "yes", yes(count_of("a", class) + 16 >= outcome.made));
    snprintf(text, sizeof text, "%s: that is an event", name);
    EXPECT(text, "yes", yes(field("a/reclaim.events", "denied") > denied));
    DO(kill_all("a"));
    snprintf(text, sizeof text, "%s: the kill was measured", name);
    EXPECT(text, "yes", yes(field("a/reclaim.last", "charged_us") > 0 && field("a/reclaim.last", "measured_us") > 0));
    snprintf(text, sizeof text, "%s: all comes back", name);
    EXPECT_SOON(text, number_in("a/reclaim.current") == empty);
}

// Whether a process that has closed all the pipes it could make can make as many again.
static int makes_as_many_again(const char *group)
{
    pid_t child = check_fork();
    if (child == 0) {
        char file[64];
        snprintf(file, sizeof file, "%s/cgroup.procs", group);
        REQUIRE(strcmp(put(file, "0"), "ok") == 0);
        int made = 0, again = 0;
        while (made < 4000 && make_pipe(made) == 0)
            made++;
        for (int i = 0; i < made; i++)
            close(pipes[i][0]), close(pipes[i][1]);
        while (again < 4000 && make_pipe(again) == 0)
            again++;
        // Some charges may be at hand, now or then.
        _exit(made > 10 && again >= made - 8 && again <= made + 8 ? 0 : 1);
    }
    return check_wait(child) == 0;
}

enum { FSOPEN = 430, FSCONFIG = 431, FSMOUNT = 432, CREATE = 6 };

// Whether a file system that was made can be mounted after it could not, since there was no room in the group.
static int mounts_once_there_is_room(const char *group)
{
    pid_t child = check_fork();
    if (child == 0) {
        char file[64];
        int context = (int)syscall(FSOPEN, "tmpfs", 0);
        REQUIRE(context >= 0 && syscall(FSCONFIG, context, CREATE, NULL, NULL, 0) == 0);
        snprintf(file, sizeof file, "%s/cgroup.procs", group);
        REQUIRE(strcmp(put(file, "0"), "ok") == 0);
        int made = 0;
        while (made < 4000 && (pipes[made][0] = dup(0)) >= 0)
            made++;
        // At first there is no descriptor to be had, then one, but no mount, and then both.
        int mount = -1, refusals = 0;
        while (made > 0 && mount < 0) {
            close(pipes[--made][0]);
            mount = (int)syscall(FSMOUNT, context, 0, 0);
            REQUIRE(mount >= 0 || errno == ENOMEM);
            refusals += mount < 0;
        }
        _exit(mount >= 0 && refusals > 1 ? 0 : 1);
    }
    return check_wait(child) == 0;
}

int main(void)
{
    cgroup_begin();
    int has_it = usable && is_ebb();
    DO(snprintf(top, sizeof top, "cg"); has_it &= strcmp(put("cgroup.subtree_control", "+reclaim"), "ok") == 0;
       snprintf(top, sizeof top, "cg/ebb-check-%d", getpid()));
    // On a system without the controller nothing of this can be seen.
    int was_usable = usable;
    usable = has_it;
    CHECK_TRUE("the controller is there", usable || !is_ebb());

    EXPECT("give", "ok", put("cgroup.subtree_control", "+reclaim"));
    EXPECT("a", "ok", make("a"));
    EXPECT("max at first", "max", get("a/reclaim.max"));
    EXPECT("a bound", "ok", put("a/reclaim.max", "20000"));
    EXPECT("it is shown", "20000", get("a/reclaim.max"));
    EXPECT("negative", "EINVAL", put("a/reclaim.max", "-1"));
    EXPECT("more than an hour", "EINVAL", put("a/reclaim.max", "3600000001"));
    EXPECT("no number", "EINVAL", put("a/reclaim.max", "soon"));
    EXPECT("no bound", "ok", put("a/reclaim.max", "max"));
    EXPECT("is shown", "max", get("a/reclaim.max"));
    EXPECT("no kill yet", "", get("a/reclaim.last"));
    EXPECT("events at first", "denied 0 overrun 0", get("a/reclaim.events"));
    EXPECT("an empty group takes some time", "yes", yes(number_in("a/reclaim.current") > 0));
    EXPECT("which nobody writes", "EINVAL", put("a/reclaim.current", "1"));
    EXPECT("costs in the root only", "no", yes(has("a/reclaim.costs")));
    EXPECT("costs there", "yes", yes(access("cg/reclaim.costs", R_OK) == 0));
    EXPECT("a calibration", "ok", (snprintf(top, sizeof top, "cg"), put("reclaim.calibrate", "1")));
    EXPECT("of 2", "ERANGE", put("reclaim.calibrate", "2"));
    DO(snprintf(top, sizeof top, "cg/ebb-check-%d", getpid()));

    // As much as 4,000 of the cheapest would not fit into, whatever this machine's speed.
    long process = usable ? (sleeper("a"), number_in("a/reclaim.current")) : 0;
    DO(kill_all("a"));
    char bound[24];
    snprintf(bound, sizeof bound, "%ld", process * 4);
    EXPECT("a bound again", "ok", put("a/reclaim.max", bound));
    check_class("pipes", "pipe", make_pipe, ENOMEM);
    check_class("socket pairs", "socket", make_pair, ENOMEM);
    check_class("eventfds", "event", make_event, ENOMEM);
    check_class("epoll sets", "epoll_set", make_set, ENOMEM);
    check_class("duplicates", "file", duplicate, ENOMEM);
    check_class("files", "file", open_file, ENOMEM);
    check_class("watched files", "epoll_item", watch, ENOMEM);
    check_class("mappings", "mapping", map_file, ENOMEM);
    check_class("parts of a mapping", "mapping", split_mapping, ENOMEM);
    check_class("timers", "timer", make_timer, EAGAIN);
    check_class("threads", "thread", make_thread, EAGAIN);
    check_class("unread events", "unread", make_events, ENOBUFS);
    check_class("descriptors in messages", "in_flight", send_descriptor, ETOOMANYREFS);
    snprintf(bound, sizeof bound, "%ld", process * 40);
    EXPECT("a bound for processes", "ok", put("a/reclaim.max", bound));
    check_class("processes", "process", make_process, EAGAIN);

    // What is given back can be had again.
    snprintf(bound, sizeof bound, "%ld", process * 4);
    DO(put("a/reclaim.max", bound));
    const char *again = "yes";
    DO(again = yes(makes_as_many_again("a")));
    EXPECT("as many again", "yes", again);
    DO(again = yes(mounts_once_there_is_room("a")));
    EXPECT("a mount that was refused", "yes", again);

    // A group below has what those above have left.
    EXPECT("a gives", "ok", put("a/cgroup.subtree_control", "+reclaim"));
    EXPECT("b", "ok", make("a/b"));
    snprintf(bound, sizeof bound, "%ld", process * 3);
    EXPECT("the bound above", "ok", put("a/reclaim.max", bound));
    EXPECT("and a larger one below", "ok", put("a/b/reclaim.max", "max"));
    struct outcome nested = { 1, ENOMEM };
    DO(nested = fill("a/b", make_pipe, 4000));
    EXPECT("the one above holds", "ENOMEM", nested.error ? check_errno_name(nested.error) : "nothing");
    EXPECT("for it as well", "yes", yes(number_in("a/reclaim.current") <= number_in("a/reclaim.max")));
    EXPECT("it counts the refusal", "yes", yes(field("a/reclaim.events", "denied") > 0));
    DO(kill_all("a"));

    // What is moved comes in, and then nothing more is admitted.
    EXPECT("c", "ok", make("c"));
    EXPECT("a bound that is too small", "ok", put("c/reclaim.max", "1"));
    pid_t child = sleeper("c");
    EXPECT("who is moved comes in", "yes", yes(number_in("c/reclaim.current") > 1));
    DO(end(child));
    struct outcome crowded = { 0, ENOMEM };
    DO(crowded = fill("c", make_pipe, 10));
    EXPECT("and makes nothing", "0", crowded.made == 0 ? "0" : "some");
    EXPECT("for want of time", "ENOMEM", check_errno_name(crowded.error));
    DO(kill_all("c"));
    EXPECT("who is made in it is refused", "EAGAIN", ({
               int directory = open(at("c"), O_RDONLY | O_DIRECTORY);
               long made = clone_into(directory, INTO_CGROUP, 88);
               int error = errno;
               if (made == 0)
                   _exit(0);
               close(directory);
               made < 0 ? check_errno_name(error) : "made";
           }));

    // Who has no bound is counted; taking the controller away leaves it running.
    child = sleeper("a/b");
    EXPECT("b has one", "1", count_of("a/b", "process") == 1 ? "1" : "another number");
    EXPECT("and so has a", "1", count_of("a", "process") == 1 ? "1" : "another number");
    EXPECT("a takes it away", "ok", put("a/cgroup.subtree_control", "-reclaim"));
    EXPECT("a still has it", "1", count_of("a", "process") == 1 ? "1" : "another number");
    EXPECT("b has no file", "no", yes(has("a/b/reclaim.max")));
    EXPECT("a gives again", "ok", put("a/cgroup.subtree_control", "+reclaim"));
    EXPECT("b has it again", "1", count_of("a/b", "process") == 1 ? "1" : "another number");
    DO(end(child));
    EXPECT_SOON("it is gone", count_of("a", "process") == 0);

    // A refusal is an event that can be waited for.
    int events = usable ? open(at("c/reclaim.events"), O_RDONLY) : -1;
    DO(char text[64]; REQUIRE(read(events, text, sizeof text) > 0));
    struct pollfd asked = { events, POLLPRI, 0 };
    DO(fill("c", make_pipe, 10));
    EXPECT("the event", "yes", yes(poll(&asked, 1, 10000) == 1 && asked.revents & POLLPRI));
    DO(close(events); kill_all("c"));

    EXPECT("b goes", "ok", take("a/b"));
    EXPECT("a goes", "ok", take("a"));
    EXPECT("c goes", "ok", take("c"));
    usable = was_usable;
    cgroup_end();
    return 0;
}
