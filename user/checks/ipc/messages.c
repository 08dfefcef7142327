// System V message queues: msgget, msgsnd, msgrcv, msgctl.
#include "../state.h"
#include "queue.h"

static int put(long kind, const char *text, int flags)
{
    static struct message message;
    message.kind = kind;
    strcpy(message.text, text);
    return msgsnd(queue, &message, strlen(text) + 1, flags);
}

static void take(const char *name, size_t room, long kind, int flags)
{
    static struct message message;
    memset(&message, 0, sizeof message);
    long got = msgrcv(queue, &message, room, kind, flags | IPC_NOWAIT);
    if (got < 0)
        check_result(name, got, errno);
    else
        check_line("%s: %ld bytes of type %ld: %s\n", name, got, message.kind, message.text);
}

static void show(const char *name)
{
    struct msqid_ds status;
    REQUIRE(msgctl(queue, IPC_STAT, &status) == 0);
    check_line("%s: %lu messages, %lu bytes of %lu, mode %o, times %d %d %d, sender %d receiver %d\n", name, (unsigned long)status.msg_qnum,
               (unsigned long)status.__msg_cbytes, (unsigned long)status.msg_qbytes, status.msg_perm.mode, status.msg_stime != 0, status.msg_rtime != 0,
               status.msg_ctime != 0, status.msg_lspid == getpid(), status.msg_lrpid == getpid());
}

static void on_signal(int number) { (void)number; }

int main(void)
{
    own_objects();
    char line[256];
    FILE *all = fopen("/proc/sysvipc/msg", "r");
    REQUIRE(all && fgets(line, sizeof line, all));
    check_line("header: %s", line);
    fclose(all);

    queue = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    REQUIRE(queue >= 0);
    show("new");
    CHECK("first", put(3, "first", 0));
    CHECK("second", put(1, "second", 0));
    CHECK("third", put(2, "third", 0));
    CHECK("fourth", put(1, "fourth", 0));
    CHECK("empty-text", msgsnd(queue, &(struct message){ .kind = 9 }, 0, 0));
    show("five");
    take("copy", 100, 1, MSG_COPY);
    take("copy-behind", 100, 7, MSG_COPY);
    take("too-long", 3, 3, 0);
    take("of-type", 100, 2, 0);
    take("no-such-type", 100, 2, 0);
    take("other-type", 100, 3, MSG_EXCEPT);
    take("lowest", 100, -3, 0);
    take("lowest-left", 100, -3, 0);
    take("none-so-low", 100, -3, 0);
    take("any", 100, 0, 0);
    take("nothing", 100, 0, 0);
    put(5, "a longer text", 0);
    take("cut-off", 8, 0, MSG_NOERROR);
    show("empty");
    CHECK("copy-that-waits", msgrcv(queue, line, 10, 0, MSG_COPY));
    CHECK("type-zero", put(0, "x", 0));
    CHECK("type-negative", put(-1, "x", 0));
    static struct message large = { .kind = 1 };
    CHECK("longest", msgsnd(queue, &large, 8192, 0));
    CHECK("too-large", msgsnd(queue, &large, 8193, IPC_NOWAIT));
    CHECK("negative-size", syscall(SYS_msgrcv, queue, &large, -1L, 0, IPC_NOWAIT));
    CHECK("bad-pointer", syscall(SYS_msgsnd, queue, BAD_POINTER, 1, 0));
    CHECK("again", msgsnd(queue, &large, 8192, 0));
    CHECK("full", msgsnd(queue, &large, 1, IPC_NOWAIT));
    CHECK("full-of-nothing", msgsnd(queue, &large, 0, IPC_NOWAIT));
    // Whoever waits for room goes on when there is some.
    pid_t child = check_fork();
    if (child == 0) {
        CHECK("sent-at-last", msgsnd(queue, &large, 100, 0));
        _exit(0);
    }
    CHECK_SOON("sender-waits", check_state(child) == 'S');
    CHECK("make-room", msgrcv(queue, &large, 9000, 0, 0));
    CHECK_STATUS("sender", check_wait(child));
    CHECK("rest", msgrcv(queue, &large, 9000, 0, 0));
    CHECK("of-child", msgrcv(queue, &large, 9000, 0, 0));
    // Whoever waits for a message of a type.
    child = check_fork();
    if (child == 0) {
        CHECK("received-at-last", msgrcv(queue, &large, 100, 4, 0));
        CHECK_STR("text", large.text);
        _exit(0);
    }
    CHECK_SOON("receiver-waits", check_state(child) == 'S');
    CHECK("not-for-it", put(3, "not for you", 0));
    CHECK("for-it", put(4, "for you", 0));
    CHECK_STATUS("receiver", check_wait(child));
    take("left", 100, 0, 0);
    take("left-too", 100, 0, 0);
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
    child = check_fork();
    if (child == 0) {
        CHECK("interrupted", msgrcv(queue, &large, 100, 4, 0));
        _exit(0);
    }
    CHECK_SOON("waits-again", check_state(child) == 'S');
    kill(child, SIGUSR1);
    CHECK_STATUS("interrupted-one", check_wait(child));
    // Limits.
    struct msqid_ds status;
    REQUIRE(msgctl(queue, IPC_STAT, &status) == 0);
    status.msg_qbytes = 5;
    CHECK("smaller", msgctl(queue, IPC_SET, &status));
    CHECK("fits", put(1, "1234", 0));
    CHECK("does-not-fit", put(1, "", IPC_NOWAIT));
    show("small");
    CHECK_CHILD("larger", REQUIRE(setgid(1000) == 0 && setuid(1000) == 0); status.msg_qbytes = 1000000; CHECK("foreign", msgctl(queue, IPC_SET, &status));
                CHECK("read", msgrcv(queue, &large, 100, 0, IPC_NOWAIT)); CHECK("write", put(1, "x", IPC_NOWAIT)); CHECK("remove", msgctl(queue, IPC_RMID, NULL)));
    status.msg_qbytes = 1000000;
    CHECK("larger-as-root", msgctl(queue, IPC_SET, &status));
    take("still-there", 100, 0, 0);
    // Removal.
    child = check_fork();
    if (child == 0) {
        CHECK("removed-while-waiting", msgrcv(queue, &large, 100, 0, 0));
        _exit(0);
    }
    CHECK_SOON("waits-for-removal", check_state(child) == 'S');
    CHECK("remove", msgctl(queue, IPC_RMID, NULL));
    CHECK_STATUS("waiter", check_wait(child));
    CHECK("gone", msgctl(queue, IPC_STAT, &status));
    key_t key = 0x45626400 + (getpid() & 0xff);
    CHECK("no-key", msgget(key, 0));
    queue = msgget(key, IPC_CREAT | 0620);
    REQUIRE(queue >= 0);
    CHECK_TRUE("found", msgget(key, 0) == queue);
    CHECK("exclusive", msgget(key, IPC_CREAT | IPC_EXCL));
    CHECK("remove-keyed", msgctl(queue, IPC_RMID, NULL));
    CHECK("no-key-again", msgget(key, 0));
    CHECK("bad-command", msgctl(queue, 99, NULL));
    struct msginfo limits;
    REQUIRE(msgctl(0, IPC_INFO, (void *)&limits) >= 0);
    check_line("limits: %d %d %d\n", limits.msgmax, limits.msgmnb, limits.msgmni);
    // What has no meaning stays as it is.
    check_write_file("/proc/sys/kernel/msgmni", "77");
    check_write_file("/proc/sys/kernel/msgmnb", "5000");
    REQUIRE(msgctl(0, IPC_INFO, (void *)&limits) >= 0);
    check_write_file("/proc/sys/kernel/msgmni", "32000");
    check_write_file("/proc/sys/kernel/msgmnb", "16384");
    check_line("whatever-the-limits: %d %d %d\n", limits.msgpool, limits.msgmap, limits.msgtql);
    CHECK_TRUE("limits-follow", limits.msgmni == 77 && limits.msgmnb == 5000);
    return 0;
}
