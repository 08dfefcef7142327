// Threads: creation, joining, identity, shared state, thread-local storage.
#include "../check.h"
#include <pthread.h>
#include <sys/prctl.h>

static _Thread_local int local = 5;
static int shared;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *add(void *argument)
{
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&mutex);
        shared += (int)(long)argument;
        pthread_mutex_unlock(&mutex);
    }
    local += 1;
    return (void *)(long)local;
}

static void *identity(void *argument)
{
    long *out = argument;
    out[0] = getpid();
    out[1] = syscall(SYS_gettid);
    out[2] = getppid();
    return NULL;
}

static void *leave_early(void *argument)
{
    pthread_exit(argument);
}

static void *open_one(void *argument)
{
    (void)argument;
    return (void *)(long)open("/dev/null", O_RDONLY);
}

static void *change_directory(void *argument)
{
    return (void *)(long)chdir(argument);
}

static void *exit_all(void *argument)
{
    (void)argument;
    exit(17);
}

static void *wait_forever(void *argument)
{
    for (;;)
        pause();
    return argument;
}

static void *only_this(void *argument)
{
    (void)argument;
    syscall(SYS_exit, 0);
    return NULL;
}

static void *fork_here(void *argument)
{
    (void)argument;
    pid_t pid = check_fork();
    if (pid == 0)
        _exit(syscall(SYS_gettid) == getpid() ? 4 : 5);
    return (void *)(long)check_wait(pid);
}

static void *run_program(void *argument)
{
    (void)argument;
    char number[16];
    snprintf(number, sizeof number, "%d", getpid());
    execl("/proc/self/exe", "self", number, NULL);
    _exit(errno);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        int number = atoi(argv[1]);
        return number == 0 ? 9 : getpid() == number && syscall(SYS_gettid) == number ? 10 : 11;
    }
    pthread_t threads[8];
    void *result;
    for (long i = 0; i < 8; i++)
        REQUIRE(pthread_create(&threads[i], NULL, add, (void *)(i + 1)) == 0);
    long locals = 0;
    for (int i = 0; i < 8; i++) {
        REQUIRE(pthread_join(threads[i], &result) == 0);
        locals += (long)result;
    }
    CHECK("sum", shared);
    CHECK("thread-locals", locals);
    CHECK("own-local", local);
    long ids[3];
    REQUIRE(pthread_create(&threads[0], NULL, identity, ids) == 0 && pthread_join(threads[0], NULL) == 0);
    CHECK_TRUE("same-process", ids[0] == getpid() && ids[2] == getppid());
    CHECK_TRUE("other-thread", ids[1] != syscall(SYS_gettid));
    CHECK_TRUE("main-thread-id", syscall(SYS_gettid) == getpid());
    REQUIRE(pthread_create(&threads[0], NULL, leave_early, (void *)77) == 0 && pthread_join(threads[0], &result) == 0);
    CHECK("exit-value", (long)result);
    REQUIRE(pthread_create(&threads[0], NULL, open_one, NULL) == 0 && pthread_join(threads[0], &result) == 0);
    CHECK("descriptor-shared", fcntl((int)(long)result, F_GETFD));
    REQUIRE(mkdir("d", 0755) == 0);
    check_write_file("d/marker", "");
    REQUIRE(pthread_create(&threads[0], NULL, change_directory, "d") == 0 && pthread_join(threads[0], NULL) == 0);
    CHECK("directory-shared", access("marker", F_OK));
    CHECK_CHILD("exit-ends-all", pthread_create(&threads[0], NULL, exit_all, NULL); wait_forever(NULL));
    CHECK_CHILD("main-leaves-first", pthread_create(&threads[0], NULL, exit_all, NULL); syscall(SYS_exit, 3));
    CHECK_CHILD("raw-exit-of-thread", pthread_create(&threads[0], NULL, only_this, NULL); check_sleep_ms(20); _exit(6));
    CHECK_CHILD("kill-ends-all", pthread_create(&threads[0], NULL, wait_forever, NULL); kill(getpid(), SIGTERM); wait_forever(NULL));
    CHECK_CHILD("exec-ends-others", pthread_create(&threads[0], NULL, wait_forever, NULL);
                execl("/proc/self/exe", "self", "after-exec", NULL); _exit(errno));
    // A thread other than the first runs a program: the process keeps its number.
    CHECK_CHILD("exec-from-thread", pthread_create(&threads[0], NULL, run_program, NULL); wait_forever(NULL));
    REQUIRE(pthread_create(&threads[0], NULL, fork_here, NULL) == 0 && pthread_join(threads[0], &result) == 0);
    CHECK_STATUS("fork-copies-one-thread", (int)(long)result);
    // Detached threads and many of them, one after the other.
    for (int i = 0; i < 200; i++) {
        REQUIRE(pthread_create(&threads[0], NULL, leave_early, (void *)(long)i) == 0);
        REQUIRE(pthread_join(threads[0], &result) == 0 && (long)result == i);
    }
    CHECK("two-hundred", 200);
    prctl(PR_SET_NAME, "main-name");
    CHECK_STR("thread-name", check_read_file("/proc/thread-self/comm"));
    return 0;
}
