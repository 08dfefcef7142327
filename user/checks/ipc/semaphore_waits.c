// Who waits for semaphores is let on by the call that makes it possible, before that returns; and what happens at the end of a process, in its order.
#include "set.h"
#include <pthread.h>
#include <sched.h>

static int get(int number) { return semctl(set, number, GETVAL); }
static int for_more(int number) { return semctl(set, number, GETNCNT); }
static int for_zero(int number) { return semctl(set, number, GETZCNT); }

static void set_all(int a, int b, int c, int d)
{
    unsigned short values[4] = { a, b, c, d };
    REQUIRE(semctl(set, 0, SETALL, (union semun){ .array = values }) == 0);
}

static void on_signal(int number) { (void)number; }

// A child that does some operations, and tells what came of it.
static pid_t doing(struct sembuf *all, int count)
{
    pid_t child = check_fork();
    if (child == 0)
        _exit(semop(set, all, count) == 0 ? 0 : errno);
    return child;
}

static pid_t doing_one(int number, int add, int flags)
{
    struct sembuf one = { number, add, flags };
    return doing(&one, 1);
}

static void await(int (*count)(int), int number, int value)
{
    while (count(number) != value)
        check_sleep_ms(1);
}

static void show_end(const char *name, pid_t child)
{
    int status = check_wait(child);
    if (WIFEXITED(status) && WEXITSTATUS(status))
        CHECK_STR(name, check_errno_name(WEXITSTATUS(status)));
    else
        CHECK_STATUS(name, status);
}

static void moments(void)
{
    set_all(1, 0, 0, 0);
    pid_t child = doing_one(0, 0, 0);
    await(for_zero, 0, 1);
    CHECK_TRUE("zero-for-a-moment", op(0, -1, 0) == 0 && op(0, 1, 0) == 0);
    show_end("has-seen-it", child);
    child = doing_one(0, 0, 0);
    await(for_zero, 0, 1);
    CHECK_TRUE("set-for-a-moment", semctl(set, 0, SETVAL, 0) == 0 && semctl(set, 0, SETVAL, 1) == 0);
    show_end("has-seen-that", child);
    set_all(0, 0, 0, 0);
    child = doing_one(0, -1, 0);
    await(for_more, 0, 1);
    REQUIRE(op(0, 1, 0) == 0);
    check_line("taken-at-once: value %d, waiting %d, by the waiter %d\n", get(0), for_more(0), semctl(set, 0, GETPID) == child);
    show_end("taken", child);
    child = doing_one(0, -1, 0);
    await(for_more, 0, 1);
    REQUIRE(op(0, 1, 0) == 0);
    CHECK("is-another's", op(0, -1, IPC_NOWAIT));
    show_end("who-has-it", child);
    child = doing_one(2, -1, 0);
    await(for_more, 2, 1);
    set_all(0, 0, 1, 0);
    check_line("set-all-lets-on: %d\n", get(2));
    show_end("let-on-by-it", child);
}

static void order(void)
{
    pid_t two = doing_one(0, -2, 0);
    await(for_more, 0, 1);
    pid_t one = doing_one(0, -1, 0);
    await(for_more, 0, 2);
    pid_t last = doing_one(0, -1, 0);
    await(for_more, 0, 3);
    REQUIRE(op(0, 1, 0) == 0);
    check_line("who-can: waiting %d\n", for_more(0));
    show_end("one", one);
    REQUIRE(op(0, 2, 0) == 0);
    check_line("who-came-first: waiting %d value %d\n", for_more(0), get(0));
    show_end("two", two);
    REQUIRE(op(0, 3, 0) == 0);
    check_line("who-is-left: waiting %d value %d\n", for_more(0), get(0));
    show_end("last", last);
}

static void several(void)
{
    set_all(0, 0, 0, 0);
    struct sembuf both[] = { { 0, -1, 0 }, { 1, -1, 0 } };
    pid_t child = doing(both, 2);
    await(for_more, 0, 1);
    REQUIRE(op(0, 1, 0) == 0);
    check_line("waits-for-the-other: %d %d value %d\n", for_more(0), for_more(1), get(0));
    REQUIRE(op(1, 1, 0) == 0);
    check_line("has-both: %d %d values %d %d\n", for_more(0), for_more(1), get(0), get(1));
    show_end("both", child);
    // One lets the next one on, and that one the first.
    struct sembuf hand_on[] = { { 1, -1, 0 }, { 2, 1, 0 } }, hand_back[] = { { 0, -1, 0 }, { 1, 1, 0 } };
    pid_t end = doing_one(2, -1, 0);
    await(for_more, 2, 1);
    pid_t second = doing(hand_on, 2);
    await(for_more, 1, 1);
    pid_t first = doing(hand_back, 2);
    await(for_more, 0, 1);
    pid_t zero = doing_one(3, 0, 0);
    REQUIRE(op(0, 1, 0) == 0);
    check_line("all-in-turn: %d %d %d values %d %d %d\n", for_more(0), for_more(1), for_more(2), get(0), get(1), get(2));
    show_end("first", first);
    show_end("second", second);
    show_end("end", end);
    show_end("zero", zero);
    set_all(1, 1, 0, 0);
    struct sembuf zeros[] = { { 0, 0, 0 }, { 1, 0, 0 } };
    child = doing(zeros, 2);
    await(for_zero, 0, 1);
    REQUIRE(op(0, -1, 0) == 0);
    check_line("one-is-zero: %d %d\n", for_zero(0), for_zero(1));
    REQUIRE(op(1, -1, 0) == 0 && op(0, 1, 0) == 0);
    check_line("both-were: %d %d\n", for_zero(0), for_zero(1));
    show_end("zeros", child);
    // What must not wait does not when its turn comes.
    set_all(0, 0, 0, 32767);
    struct sembuf then_not[] = { { 0, -1, 0 }, { 1, -1, IPC_NOWAIT } }, too_high[] = { { 0, -1, 0 }, { 3, 1, 0 } };
    child = doing(then_not, 2);
    await(for_more, 0, 1);
    REQUIRE(op(0, 1, 0) == 0);
    check_line("nothing-taken: %d waiting %d %d\n", get(0), for_more(0), for_more(1));
    show_end("not-waiting", child);
    set_all(0, 0, 0, 32767);
    child = doing(too_high, 2);
    await(for_more, 0, 1);
    REQUIRE(op(0, 1, 0) == 0);
    check_line("nothing-raised: %d %d\n", get(0), get(3));
    show_end("too-high", child);
}

// Who waits for several is counted where it was found to wait last, and is looked at only where that may let it on.
static void where_several_wait(void)
{
    set_all(0, 1, 0, 0);
    struct sembuf zeros[] = { { 0, 0, 0 }, { 1, 0, 0 } }, raise[] = { { 0, 1, 0 }, { 3, 1, 0 } };
    pid_t child = doing(zeros, 2);
    await(for_zero, 1, 1);
    REQUIRE(semop(set, raise, 2) == 0);
    check_line("none-is-zero: %d %d\n", for_zero(0), for_zero(1));
    REQUIRE(semctl(set, 2, SETVAL, 5) == 0);
    check_line("nor-then: %d %d\n", for_zero(0), for_zero(1));
    REQUIRE(semctl(set, 3, SETVAL, 0) == 0);
    check_line("another-is: %d %d\n", for_zero(0), for_zero(1));
    REQUIRE(op(0, -1, 0) == 0 && op(0, 1, 0) == 0);
    check_line("was-zero: %d %d\n", for_zero(0), for_zero(1));
    REQUIRE(semctl(set, 2, SETVAL, 7) == 0);
    check_line("set-elsewhere: %d %d\n", for_zero(0), for_zero(1));
    REQUIRE(op(0, -1, 0) == 0 && semop(set, raise, 2) == 0);
    CHECK_CHILD("undo", struct sembuf back[] = { { 2, 1, 0 }, { 2, -1, SEM_UNDO } }; REQUIRE(semop(set, back, 2) == 0));
    check_line("undone-elsewhere: %d %d\n", for_zero(0), for_zero(1));
    set_all(2, 2, 2, 2);
    check_line("set-all: %d %d\n", for_zero(0), for_zero(1));
    set_all(0, 0, 2, 2);
    show_end("several-zeros", child);
    // Who wants to change several is looked at after each change.
    set_all(1, 0, 0, 0);
    struct sembuf both[] = { { 0, -1, 0 }, { 1, -1, 0 } };
    child = doing(both, 2);
    await(for_more, 1, 1);
    REQUIRE(semctl(set, 0, SETVAL, 0) == 0);
    check_line("lowered: %d %d\n", for_more(0), for_more(1));
    set_all(1, 1, 0, 0);
    show_end("several-lowered", child);
}

// The end of a process lets on many, and does not wait for them; who is told of it finds that it has given back.
static void many_at_an_end(void)
{
    enum { MANY = 60, PAIRS = 100 };
    set_all(0, 0, 0, 0);
    struct sembuf all[2 * PAIRS + 1];
    for (int i = 0; i < 2 * PAIRS; i++)
        all[i] = (struct sembuf){ 1, i % 2 ? -1 : 1, 0 };
    all[2 * PAIRS] = (struct sembuf){ 0, -1, 0 };
    pid_t children[MANY];
    for (int i = 0; i < MANY; i++)
        children[i] = doing(all, 2 * PAIRS + 1);
    await(for_more, 0, MANY);
    enum { ENDS = 3 };
    pid_t ends[ENDS];
    int pipes[2];
    REQUIRE(pipe(pipes) == 0);
    for (int i = 0; i < ENDS; i++)
        if ((ends[i] = check_fork()) == 0) {
            struct sembuf back[] = { { 0, MANY / ENDS, 0 }, { 0, -(MANY / ENDS), SEM_UNDO }, { 3, 1, 0 } };
            REQUIRE(semop(set, back, 3) == 0);
            pause();
        }
    await(get, 3, ENDS);
    close(pipes[1]);
    for (int i = 0; i < ENDS; i++)
        kill(ends[i], SIGKILL);
    char byte;
    REQUIRE(read(pipes[0], &byte, 1) == 0);
    close(pipes[0]);
    check_line("all-let-on: %d waiting, value %d\n", for_more(0), get(0));
    for (int i = 0; i < ENDS; i++)
        check_wait(ends[i]);
    int ended = 0;
    for (int i = 0; i < MANY; i++)
        ended += check_wait(children[i]) == 0;
    check_line("all-went-on: %d\n", ended);
    // One that would be let on is told to stop waiting right behind that.
    int taken = 0;
    for (int i = 0; i < 20; i++) {
        set_all(0, 0, 0, 0);
        pid_t holder = check_fork();
        if (holder == 0) {
            struct sembuf back[] = { { 0, 1, 0 }, { 0, -1, SEM_UNDO }, { 3, 1, 0 } };
            REQUIRE(semop(set, back, 3) == 0);
            pause();
        }
        await(get, 3, 1);
        pid_t child = check_fork();
        if (child == 0) {
            signal(SIGUSR1, on_signal);
            struct sembuf lower = { 0, -1, 0 };
            _exit(semop(set, &lower, 1) == 0 ? 0 : errno);
        }
        await(for_more, 0, 1);
        kill(holder, SIGKILL);
        check_wait(holder);
        kill(child, SIGUSR1);
        int status = check_wait(child);
        taken += WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGUSR1;
    }
    check_line("let-on-before-signals: %d\n", taken);
}

// Each lowers the count and waits for zero; who comes last sets it anew.
static void barrier(void)
{
    enum { MANY = 4, ROUNDS = 100 };
    set_all(MANY, MANY, 0, 0);
    pid_t children[MANY];
    for (int i = 0; i < MANY; i++) {
        children[i] = check_fork();
        if (children[i])
            continue;
        for (int round = 0; round < ROUNDS; round++) {
            int which = round % 2;
            if (i < MANY - 1) {
                REQUIRE(op(which, -1, 0) == 0 && op(which, 0, 0) == 0);
                continue;
            }
            while (get(which) != 1 || for_zero(which) != MANY - 1)
                sched_yield();
            REQUIRE(op(which, -1, 0) == 0 && semctl(set, which, SETVAL, MANY) == 0);
        }
        _exit(0);
    }
    int passed = 0;
    for (int i = 0; i < MANY; i++)
        passed += check_wait(children[i]) == 0;
    check_line("barrier: %d\n", passed);
}

static void undo(void)
{
    set_all(0, 0, 0, 0);
    // It has the semaphore, whether it has gone on or not.
    pid_t child = doing_one(0, -1, SEM_UNDO);
    await(for_more, 0, 1);
    REQUIRE(op(0, 1, 0) == 0);
    kill(child, SIGKILL);
    check_wait(child);
    check_line("given-back: %d\n", get(0));
    child = check_fork();
    if (child == 0) {
        REQUIRE(op(0, -1, SEM_UNDO) == 0);
        await(for_more, 0, 1);
        _exit(0);
    }
    await(get, 0, 0);
    pid_t waiter = doing_one(0, -1, 0);
    show_end("holder", child);
    check_line("handed-on: %d %d\n", get(0), for_more(0));
    show_end("next-holder", waiter);
    CHECK_CHILD("unshare", REQUIRE(op(0, 2, SEM_UNDO) == 0 && op(1, 1, SEM_UNDO) == 0); CHECK("unshared", unshare(CLONE_SYSVSEM)); check_line("at-once: %d %d\n", get(0), get(1));
                REQUIRE(op(1, 3, SEM_UNDO) == 0));
    check_line("after-unshare: %d %d\n", get(0), get(1));
    CHECK_CHILD("range", CHECK("most", op(1, 32767, SEM_UNDO)); REQUIRE(op(1, -32767, 0) == 0); CHECK("one-more", op(1, 1, SEM_UNDO)); REQUIRE(op(1, -1, 0) == 0);
                CHECK("too-much", op(1, 1, SEM_UNDO)));
    CHECK_CHILD("set-all-forgets", REQUIRE(op(0, 2, SEM_UNDO) == 0); set_all(5, 5, 5, 5); REQUIRE(op(1, -2, SEM_UNDO) == 0));
    check_line("only-what-came-later: %d %d\n", get(0), get(1));
    // The end of a pipe is seen after that.
    enum { ENDS = 40 };
    int late = 0;
    for (int i = 0; i < ENDS; i++) {
        set_all(1, 1, 1, 1);
        int ends[2];
        REQUIRE(pipe(ends) == 0);
        child = check_fork();
        if (child == 0) {
            struct sembuf all[] = { { 0, -1, SEM_UNDO }, { 1, -1, SEM_UNDO }, { 2, -1, SEM_UNDO }, { 3, -1, SEM_UNDO } };
            REQUIRE(semop(set, all, 4) == 0);
            if (i % 2)
                _exit(0);
            pause();
        }
        close(ends[1]);
        if (i % 2 == 0) {
            await(get, 3, 0);
            kill(child, SIGKILL);
        }
        char byte;
        REQUIRE(read(ends[0], &byte, 1) == 0);
        for (int number = 0; number < 4; number++)
            late += get(number) == 0;
        close(ends[0]);
        check_wait(child);
    }
    check_line("given-back-after-descriptors: %d\n", late);
}

static void errors(void)
{
    struct sembuf *many = calloc(501, sizeof *many), lower = { 0, -1, 0 };
    struct timespec none = { 0, 0 }, bad = { 0, 1000000000 };
    CHECK("negative-with-too-many", syscall(SYS_semtimedop, -1, many, 501, NULL));
    CHECK("too-many-with-bad-time", syscall(SYS_semtimedop, set, many, 501, &bad));
    CHECK("negative-with-none", syscall(SYS_semtimedop, -1, many, 0, NULL));
    CHECK("negative-with-bad-pointer", syscall(SYS_semtimedop, -1, BAD_POINTER, 1, NULL));
    set_all(0, 0, 0, 0);
    CHECK("no-time", semtimedop(set, &lower, 1, &none));
    CHECK("too-high-nowhere", semctl(0x7ffffff, 0, SETVAL, 40000));
    CHECK("bad-number-and-too-high", semctl(set, 9, SETVAL, 40000));
}

// A thread that waits in a set just as that is removed.
static int raced;
static int rounds_begun, rounds_ended, outcomes_right;

static void *waits_in_rounds(void *unused)
{
    for (int seen = 0;;) {
        int begun;
        while ((begun = __atomic_load_n(&rounds_begun, __ATOMIC_SEQ_CST)) == seen)
            sched_yield();
        if (begun < 0)
            return unused;
        seen = begun;
        struct sembuf lower = { 0, -1, 0 };
        int result = semop(__atomic_load_n(&raced, __ATOMIC_SEQ_CST), &lower, 1);
        outcomes_right += result == -1 && (errno == EIDRM || errno == EINVAL);
        __atomic_store_n(&rounds_ended, seen, __ATOMIC_SEQ_CST);
    }
}

static void removal(void)
{
    pid_t child = doing_one(0, -1, 0);
    await(for_more, 0, 1);
    CHECK_TRUE("raised-and-removed", op(0, 1, 0) == 0 && semctl(set, 0, IPC_RMID) == 0);
    show_end("raised-first", child);
    enum { ROUNDS = 300 };
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, waits_in_rounds, NULL) == 0);
    unsigned delay = 1;
    for (int round = 1; round <= ROUNDS; round++) {
        int id = semget(IPC_PRIVATE, 1, 0600);
        REQUIRE(id >= 0);
        __atomic_store_n(&raced, id, __ATOMIC_SEQ_CST);
        __atomic_store_n(&rounds_begun, round, __ATOMIC_SEQ_CST);
        delay = delay * 1103515245 + 12345;
        for (volatile unsigned i = (delay >> 16) % 400; i > 0; i--)
            ;
        REQUIRE(semctl(id, 0, IPC_RMID) == 0);
        while (__atomic_load_n(&rounds_ended, __ATOMIC_SEQ_CST) != round)
            sched_yield();
    }
    __atomic_store_n(&rounds_begun, -1, __ATOMIC_SEQ_CST);
    REQUIRE(pthread_join(thread, NULL) == 0);
    check_line("removed-while-entering: %d\n", outcomes_right);
}

int main(void)
{
    own_objects();
    set = semget(IPC_PRIVATE, 4, IPC_CREAT | 0600);
    REQUIRE(set >= 0);
    moments();
    order();
    several();
    where_several_wait();
    many_at_an_end();
    barrier();
    undo();
    errors();
    removal();
    return 0;
}
