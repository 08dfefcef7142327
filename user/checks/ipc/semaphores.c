// System V semaphores: semget, semop, semtimedop, semctl.
#include "set.h"
#include <pthread.h>

static int get(int number) { return semctl(set, number, GETVAL); }

static void show(const char *name)
{
    unsigned short values[4];
    REQUIRE(semctl(set, 0, GETALL, (union semun){ .array = values }) == 0);
    check_line("%s: %d %d %d %d\n", name, values[0], values[1], values[2], values[3]);
}

static void *waits_for_more(void *result)
{
    *(int *)result = op(1, -1, 0) == 0 ? 0 : errno;
    return NULL;
}

static void on_alarm(int number) { (void)number; }

int main(void)
{
    own_objects();
    char line[256];
    FILE *all = fopen("/proc/sysvipc/sem", "r");
    REQUIRE(all && fgets(line, sizeof line, all));
    check_line("header: %s", line);
    fclose(all);

    set = semget(IPC_PRIVATE, 4, IPC_CREAT | 0600);
    REQUIRE(set >= 0);
    show("new");
    CHECK("raise", op(0, 3, 0));
    CHECK("lower", op(0, -2, 0));
    CHECK("zero-not-now", op(0, 0, IPC_NOWAIT));
    CHECK("lower-not-now", op(0, -2, IPC_NOWAIT));
    CHECK("zero", op(1, 0, 0));
    CHECK_TRUE("pids", semctl(set, 0, GETPID) == getpid() && semctl(set, 1, GETPID) == getpid() && semctl(set, 2, GETPID) == 0);
    // All or none, each on top of those before it.
    struct sembuf three[] = { { 1, 2, 0 }, { 0, -1, 0 }, { 2, -1, IPC_NOWAIT } };
    CHECK("none", semop(set, three, 3));
    show("nothing-done");
    struct sembuf in_turn[] = { { 2, 1, 0 }, { 2, -1, 0 }, { 2, 0, 0 }, { 3, 5, 0 } };
    CHECK("in-turn", semop(set, in_turn, 4));
    show("done");
    CHECK("too-high", op(3, 32767, 0));
    CHECK("highest", op(2, 32767, 0));
    CHECK("bad-number", op(4, 1, 0));
    CHECK("no-operations", semop(set, three, 0));
    struct sembuf *many = calloc(501, sizeof *many);
    CHECK("too-many", semop(set, many, 501));
    CHECK("bad-pointer", syscall(SYS_semop, set, BAD_POINTER, 1));
    CHECK("bad-id", semop(-1, three, 1));
    // Values.
    CHECK("set-value", semctl(set, 2, SETVAL, 7));
    CHECK("set-too-high", semctl(set, 2, SETVAL, 32768));
    CHECK("set-negative", semctl(set, 2, SETVAL, -1));
    CHECK("set-nowhere", semctl(set, 9, SETVAL, 1));
    CHECK("value", get(2));
    CHECK("value-nowhere", get(-1));
    unsigned short values[4] = { 4, 0, 2, 1 };
    CHECK("set-all", semctl(set, 0, SETALL, (union semun){ .array = values }));
    show("all");
    values[1] = 40000;
    CHECK("set-all-too-high", semctl(set, 0, SETALL, (union semun){ .array = values }));
    // Waiting.
    int result = -1;
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, waits_for_more, &result) == 0);
    CHECK_SOON("waits", semctl(set, 1, GETNCNT) == 1);
    CHECK("for-zero", semctl(set, 1, GETZCNT));
    CHECK("raise-for-it", op(1, 1, 0));
    REQUIRE(pthread_join(thread, NULL) == 0);
    check_line("woken: %d, then %d waiting, value %d\n", result, semctl(set, 1, GETNCNT), get(1));
    struct sembuf lower = { 1, -1, 0 };
    struct timespec short_time = { 0, 20000000 }, bad_time = { 0, 1000000000 };
    CHECK("times-out", semtimedop(set, &lower, 1, &short_time));
    CHECK("bad-time", semtimedop(set, &lower, 1, &bad_time));
    CHECK("none-waits", semctl(set, 1, GETNCNT));
    struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
    REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
    pid_t child = check_fork();
    if (child == 0) {
        CHECK("interrupted", op(1, -1, 0));
        _exit(0);
    }
    CHECK_SOON("child-waits", semctl(set, 1, GETNCNT) == 1);
    kill(child, SIGUSR1);
    CHECK_STATUS("child", check_wait(child));
    CHECK("nobody-waits", semctl(set, 1, GETNCNT));
    child = check_fork();
    if (child == 0) {
        op(0, 0, 0);
        _exit(1);
    }
    CHECK_SOON("waits-for-zero", semctl(set, 0, GETZCNT) == 1);
    kill(child, SIGKILL);
    CHECK_STATUS("killed", check_wait(child));
    CHECK("none-for-zero", semctl(set, 0, GETZCNT));
    // What ends with a process is taken back.
    CHECK_CHILD("undo", CHECK("raise", op(0, 3, SEM_UNDO)); CHECK("lower", op(2, -1, SEM_UNDO)); show("in-child"));
    show("undone");
    CHECK_CHILD("undo-of-exec", REQUIRE(op(0, 2, SEM_UNDO) == 0); CHECK_CHILD("grandchild", show("not-yet")));
    show("undone-again");
    CHECK_CHILD("set-forgets", REQUIRE(op(0, 2, SEM_UNDO) == 0); CHECK("set", semctl(set, 0, SETVAL, 9)));
    show("kept");
    CHECK_CHILD("within-bounds", REQUIRE(op(3, 4, SEM_UNDO) == 0 && op(3, -5, 0) == 0));
    show("not-below-zero");
    CHECK_CHILD("of-threads", result = -1; REQUIRE(op(1, 1, 0) == 0); REQUIRE(pthread_create(&thread, NULL, waits_for_more, &result) == 0);
                REQUIRE(pthread_join(thread, NULL) == 0); CHECK("thread", result));
    child = check_fork();
    if (child == 0) {
        REQUIRE(op(2, -1, SEM_UNDO) == 0);
        pause();
        _exit(1);
    }
    CHECK_SOON("lowered", get(2) == 1);
    kill(child, SIGKILL);
    CHECK_STATUS("killed-holder", check_wait(child));
    show("given-back");
    // Removal.
    child = check_fork();
    if (child == 0) {
        CHECK("removed-while-waiting", op(1, -5, 0));
        _exit(0);
    }
    CHECK_SOON("waits-for-removal", semctl(set, 1, GETNCNT) == 1);
    CHECK("remove", semctl(set, 0, IPC_RMID));
    CHECK_STATUS("waiter", check_wait(child));
    CHECK("gone", get(0));
    // Keys and permissions.
    key_t key = 0x45626300 + (getpid() & 0xff);
    CHECK("no-key", semget(key, 1, 0));
    CHECK("none-in-it", semget(key, 0, IPC_CREAT | 0600));
    CHECK("negative", semget(IPC_PRIVATE, -1, 0600));
    CHECK("many", semget(IPC_PRIVATE, 1000000, 0600));
    set = semget(key, 2, IPC_CREAT | IPC_EXCL | 0444);
    REQUIRE(set >= 0);
    CHECK_TRUE("found", semget(key, 0, 0) == set && semget(key, 2, IPC_CREAT) == set);
    CHECK("more", semget(key, 3, 0));
    CHECK("exclusive", semget(key, 1, IPC_CREAT | IPC_EXCL));
    CHECK_CHILD("foreign", REQUIRE(setgid(1000) == 0 && setuid(1000) == 0); CHECK("value", get(0)); CHECK("zero", op(0, 0, 0)); CHECK("raise", op(0, 1, 0));
                CHECK("set", semctl(set, 0, SETVAL, 1)); CHECK("remove", semctl(set, 0, IPC_RMID)); CHECK("too-far", op(2, 1, 0));
                CHECK("more-than-allowed", semget(key, 3, 0666)); CHECK("not-allowed", semget(key, 2, 0666)));
    struct semid_ds status;
    REQUIRE(semctl(set, 0, IPC_STAT, (union semun){ .buf = &status }) == 0);
    check_line("status: %lu mode %o times %d %d\n", (unsigned long)status.sem_nsems, status.sem_perm.mode, status.sem_otime != 0, status.sem_ctime != 0);
    status.sem_perm.uid = 1000;
    status.sem_perm.mode = 0640;
    CHECK("give-away", semctl(set, 0, IPC_SET, (union semun){ .buf = &status }));
    CHECK_CHILD("owner", REQUIRE(setgid(1000) == 0 && setuid(1000) == 0); CHECK("raise", op(0, 1, 0)); CHECK("remove", semctl(set, 0, IPC_RMID)));
    CHECK("bad-command", semctl(set, 0, 99));
    struct seminfo limits;
    REQUIRE(semctl(0, 0, IPC_INFO, (union semun){ .info = &limits }) >= 0);
    check_line("limits: %d %d %d %d %d %d\n", limits.semmsl, limits.semmns, limits.semopm, limits.semmni, limits.semvmx, limits.semaem);
    // What has no meaning stays as it is.
    check_write_file("/proc/sys/kernel/sem", "100 200 50 60");
    REQUIRE(semctl(0, 0, IPC_INFO, (union semun){ .info = &limits }) >= 0);
    check_write_file("/proc/sys/kernel/sem", "32000 1024000000 500 32000");
    check_line("whatever-the-limits: %d %d %d\n", limits.semmap, limits.semmnu, limits.semume);
    CHECK_TRUE("limits-follow", limits.semmsl == 100 && limits.semmns == 200 && limits.semopm == 50 && limits.semmni == 60);
    return 0;
}
