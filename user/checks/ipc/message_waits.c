// System V message queues: who waits for a message gets it from whoever sends it; what ends a wait; copies, long messages and limits.
#include "../state.h"
#include "queue.h"
#include <sched.h>
#include <sys/mman.h>

static struct message message;

static int put(long kind, const char *text)
{
    message.kind = kind;
    strcpy(message.text, text);
    return msgsnd(queue, &message, strlen(text), IPC_NOWAIT);
}

static long take(long kind) { return msgrcv(queue, &message, sizeof message.text, kind, IPC_NOWAIT); }

// How a child ends that makes one call: what that returns, or 100 and the error.
static void end(long result) { _exit(result < 0 ? 100 + errno : result); }

static void become(int uid)
{
    if (uid)
        REQUIRE(setgid(uid) == 0 && setuid(uid) == 0);
}

static pid_t receiver_of(int uid, size_t room, long kind, int flags)
{
    pid_t pid = check_fork();
    if (pid == 0) {
        become(uid);
        end(msgrcv(queue, &message, room, kind, flags));
    }
    return check_waits(pid);
}

static pid_t receiver(size_t room, long kind, int flags) { return receiver_of(0, room, kind, flags); }

static pid_t sender_of(int uid, size_t bytes)
{
    pid_t pid = check_fork();
    if (pid == 0) {
        become(uid);
        message.kind = 1;
        end(msgsnd(queue, &message, bytes, 0));
    }
    return check_waits(pid);
}

static unsigned long held(void)
{
    struct msqid_ds status;
    REQUIRE(msgctl(queue, IPC_STAT, &status) == 0);
    return status.msg_qnum;
}

static void set(unsigned mode, unsigned long bytes)
{
    struct msqid_ds status;
    REQUIRE(msgctl(queue, IPC_STAT, &status) == 0);
    status.msg_perm.mode = mode;
    status.msg_qbytes = bytes;
    REQUIRE(msgctl(queue, IPC_SET, &status) == 0);
}

static void begin(void)
{
    queue = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    REQUIRE(queue >= 0);
}

static void handing_over(void)
{
    begin();
    pid_t first = receiver(100, 0, 0);
    CHECK("handed-over", put(1, "12345"));
    CHECK("nobody-takes-it-back", take(0));
    struct msqid_ds status;
    REQUIRE(msgctl(queue, IPC_STAT, &status) == 0);
    CHECK_TRUE("who-received", status.msg_lrpid == first && status.msg_lspid == getpid() && status.msg_rtime && status.msg_stime);
    CHECK("remove-behind-it", msgctl(queue, IPC_RMID, NULL));
    CHECK_STATUS("has-it", check_wait(first));

    begin();
    first = receiver(100, 7, 0);
    pid_t second = receiver(100, 0, 0), third = receiver(100, 0, 0), fourth = receiver(100, 7, MSG_EXCEPT), fifth = receiver(100, -3, 0);
    CHECK("of-another-type", put(5, "12"));
    CHECK("of-the-type", put(7, "123"));
    CHECK("next", put(7, "1234"));
    CHECK("not-this-type", put(7, "12345"));
    CHECK("any-other", put(4, "123456"));
    CHECK("too-high", put(4, "1234567"));
    CHECK("low-enough", put(3, "12345678"));
    CHECK("left", held());
    CHECK_STATUS("first", check_wait(first));
    CHECK_STATUS("second", check_wait(second));
    CHECK_STATUS("third", check_wait(third));
    CHECK_STATUS("fourth", check_wait(fourth));
    CHECK_STATUS("fifth", check_wait(fifth));
    CHECK("left-of-7", take(7));
    CHECK("left-of-4", take(4));

    first = receiver(2, 0, 0), second = receiver(4, 1, 0), third = receiver(2, 0, MSG_NOERROR), fourth = receiver(100, 0, 0);
    CHECK("too-long-for-two", put(1, "12345"));
    CHECK("for-the-last", put(1, "123456"));
    CHECK("none-left", held());
    CHECK_STATUS("too-small", check_wait(first));
    CHECK_STATUS("too-small-too", check_wait(second));
    CHECK_STATUS("cut-off", check_wait(third));
    CHECK_STATUS("large-enough", check_wait(fourth));
    first = receiver(2, 0, 0);
    CHECK("too-long-for-all", put(1, "12345"));
    CHECK_STATUS("told", check_wait(first));
    CHECK("stays", take(0));
    REQUIRE(msgctl(queue, IPC_RMID, NULL) == 0);
}

static void on_signal(int number) { (void)number; }

static void ends_of_waits(void)
{
    begin();
    pid_t child = receiver(100, 0, 0);
    kill(child, SIGKILL);
    CHECK_STATUS("killed", check_wait(child));
    CHECK("to-nobody", put(1, "123"));
    CHECK("is-there", take(0));
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
    child = receiver(100, 0, 0);
    kill(child, SIGUSR1);
    CHECK_STATUS("handler", check_wait(child));
    CHECK("to-nobody-again", put(1, "1234"));
    CHECK("is-there-again", take(0));

    // A stop is no end: the call begins again.
    int status;
    child = receiver(100, 0, 0);
    kill(child, SIGSTOP);
    REQUIRE(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    kill(child, SIGCONT);
    REQUIRE(waitpid(child, &status, WCONTINUED) == child);
    check_waits(child);
    CHECK("after-stop", put(1, "12345"));
    CHECK_STATUS("receiver-goes-on", check_wait(child));
    child = receiver(100, 0, 0);
    kill(child, SIGSTOP);
    REQUIRE(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    CHECK("while-stopped", put(1, "123456"));
    CHECK("waits-for-it", held());
    kill(child, SIGCONT);
    CHECK_STATUS("finds-it", check_wait(child));
    set(0600, 5);
    CHECK("full", put(1, "12345"));
    child = sender_of(0, 5);
    kill(child, SIGSTOP);
    REQUIRE(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    kill(child, SIGCONT);
    REQUIRE(waitpid(child, &status, WCONTINUED) == child);
    check_waits(child);
    CHECK("room", take(0));
    CHECK_STATUS("sender-goes-on", check_wait(child));
    CHECK("of-the-sender", take(0));

    // Who may not use the queue any more does not wait for it.
    set(0666, 5);
    CHECK("full-again", put(1, "12345"));
    pid_t reader = receiver_of(1000, 100, 2, 0), writer = sender_of(1000, 5);
    set(0600, 5);
    CHECK_STATUS("may-not-read", check_wait(reader));
    CHECK("room-for-nobody", take(0));
    CHECK_STATUS("may-not-write", check_wait(writer));
    // More room.
    CHECK("full-once-more", put(1, "12345"));
    writer = sender_of(0, 5);
    set(0600, 100);
    CHECK_STATUS("larger", check_wait(writer));
    set(0600, 5);
    reader = receiver(100, 2, 0), writer = sender_of(0, 5);
    CHECK("remove", msgctl(queue, IPC_RMID, NULL));
    CHECK_STATUS("reader-of-none", check_wait(reader));
    CHECK_STATUS("writer-of-none", check_wait(writer));
}

// Who comes just as the queue is removed does not wait for ever.
static void removal(void)
{
    struct {
        int queue, round, done, other;
    } volatile *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    enum { ROUNDS = 2000 };
    pid_t child = check_fork();
    if (child == 0) {
        for (int round = 1; round <= ROUNDS; round++) {
            while (shared->round != round)
                sched_yield();
            __sync_synchronize();
            if (msgrcv(shared->queue, &message, 8, 0, 0) != -1 || (errno != EIDRM && errno != EINVAL))
                shared->other++;
            shared->done = round;
        }
        _exit(0);
    }
    for (int round = 1; round <= ROUNDS; round++) {
        shared->queue = msgget(IPC_PRIVATE, 0600);
        __sync_synchronize();
        shared->round = round;
        for (volatile int i = 0; i < round % 300; i++)
            ;
        REQUIRE(msgctl(shared->queue, IPC_RMID, NULL) == 0);
        while (shared->done != round)
            sched_yield();
    }
    CHECK_STATUS("all-removed", check_wait(child));
    CHECK("other-ends", shared->other);
}

static long copy(size_t room, int flags) { return msgrcv(queue, &message, room, 0, MSG_COPY | IPC_NOWAIT | flags); }

static void copies(void)
{
    begin();
    REQUIRE(put(3, "0123456789") == 0);
    CHECK("copy", copy(10, 0));
    CHECK_TRUE("text", message.kind == 3 && memcmp(message.text, "0123456789", 10) == 0);
    CHECK("copy-too-small", copy(9, 0));
    CHECK("copy-is-not-cut-off", copy(9, MSG_NOERROR));
    CHECK("copy-larger", copy(5000, MSG_NOERROR));
    char *pages = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(pages != MAP_FAILED && munmap(pages + 4096, 4096) == 0);
    CHECK("copy-beyond-memory", msgrcv(queue, pages, 5000, 0, MSG_COPY | IPC_NOWAIT));
    CHECK("copy-within-memory", msgrcv(queue, pages, 4000, 0, MSG_COPY | IPC_NOWAIT));
    CHECK("receive-beyond-memory", msgrcv(queue, pages, 5000, 4, IPC_NOWAIT));
    CHECK("copy-nowhere", msgrcv(queue, BAD_POINTER, 10, 0, MSG_COPY | IPC_NOWAIT));
    CHECK("copy-nowhere-of-none", msgrcv(0x7fffffff, BAD_POINTER, 10, 0, MSG_COPY | IPC_NOWAIT));
    CHECK("copy-of-none", msgrcv(0x7fffffff, &message, 10, 0, MSG_COPY | IPC_NOWAIT));
    CHECK("all-there", held());
    REQUIRE(msgctl(queue, IPC_RMID, NULL) == 0);
    munmap(pages, 4096);
}

static void set_limit(const char *name, const char *text)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/sys/kernel/%s", name);
    int fd = open(path, O_WRONLY);
    REQUIRE(fd >= 0);
    ssize_t written = write(fd, text, strlen(text));
    const char *error = written < 0 ? check_errno_name(errno) : "ok";
    close(fd);
    char shown[64];
    snprintf(shown, sizeof shown, "%s", text);
    for (char *blank = shown; (blank = strpbrk(blank, " \t\n")); blank++)
        *blank = '_';
    check_line("%s of %s: %s, %s\n", name, shown, error, check_read_file(path));
}

// A message of so many pages, from memory that was never touched but at its edges, to such memory.
static void long_message(void)
{
    enum { BYTES = 1000003 };
    set_limit("msgmax", "2000000");
    set_limit("msgmnb", "4000000");
    begin();
    set_limit("msgmnb", "16384");
    char *memory = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    char *from = memory + 3, *to = memory + (2 << 20) + 5;
    *(long *)from = 9;
    for (int i = 0; i < BYTES; i += 40001)
        from[8 + i] = i / 40001 + 1;
    CHECK("long", msgsnd(queue, from, BYTES, 0));
    CHECK("long-again", msgsnd(queue, from, BYTES, 0));
    CHECK("copy-of-long", msgrcv(queue, to, BYTES, 1, MSG_COPY | IPC_NOWAIT));
    CHECK_TRUE("same", memcmp(from, to, 8 + BYTES) == 0);
    madvise(to - 5, 2 << 20, MADV_DONTNEED);
    CHECK("receive-long", msgrcv(queue, to, BYTES, 0, 0));
    CHECK_TRUE("same-again", memcmp(from, to, 8 + BYTES) == 0);
    set_limit("msgmax", "8192");
    CHECK("copy-above-limit", msgrcv(queue, to, BYTES, 0, MSG_COPY | IPC_NOWAIT));
    CHECK("receive-cut-off", msgrcv(queue, to, 50000, 0, MSG_NOERROR));
    CHECK("empty", held());
    CHECK("with-one", put(1, "x"));
    REQUIRE(msgctl(queue, IPC_RMID, NULL) == 0);
    munmap(memory, 4 << 20);
}

static void limits(void)
{
    static const char *const names[] = { "auto_msgmni", "sem_next_id", "msg_next_id", "shm_next_id" };
    for (int i = 0; i < 4; i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/sys/kernel/%s", names[i]);
        check_line("%s: %s\n", names[i], check_read_file(path));
    }
    static const char *const numbers[] = { "0x2000", "020000", "8192 5", "8192 x", "\t8192\n", "5k", "+5", "-1", "08", "2147483648", " " };
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        set_limit("msgmax", numbers[i]);
    static const char *const of_sets[] = { "250", "-5", "100000 7 5000", "32000 1024000000 500 40000", "32000 -1 -3 -1",
                                           "2147483648", "31999 x", "31998 1024000000 500 32000 9" };
    for (unsigned i = 0; i < sizeof of_sets / sizeof *of_sets; i++)
        set_limit("sem", of_sets[i]);
    set_limit("sem", "32000 1024000000 500 32000");
    // The next one gets the id that was asked for, or one behind it.
    for (int i = 0; i < 2; i++) {
        set_limit("msg_next_id", "163917");
        CHECK_STR("asked-for", check_read_file("/proc/sys/kernel/msg_next_id"));
        int id = msgget(IPC_PRIVATE, 0600);
        check_line("id: %d, then %s\n", id, check_read_file("/proc/sys/kernel/msg_next_id"));
    }
    REQUIRE(msgctl(163917, IPC_RMID, NULL) == 0 && msgctl(163918, IPC_RMID, NULL) == 0);
    set_limit("shm_next_id", "-1");
    set_limit("sem_next_id", "2147483648");
    set_limit("auto_msgmni", "1");
    set_limit("auto_msgmni", "2");
}

int main(void)
{
    own_objects();
    handing_over();
    ends_of_waits();
    removal();
    copies();
    long_message();
    limits();
    return 0;
}
