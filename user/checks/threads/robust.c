// Robust mutexes: the end of an owner is noticed; clear_child_tid wakes a joiner.
#include "../check.h"
#include <pthread.h>
#include <sys/mman.h>

static pthread_mutex_t *mutex;

static void *die_with_it(void *argument)
{
    (void)argument;
    pthread_mutex_lock(mutex);
    return NULL;
}

int main(void)
{
    mutex = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(mutex != MAP_FAILED);
    pthread_mutexattr_t attribute;
    pthread_mutexattr_init(&attribute);
    pthread_mutexattr_setrobust(&attribute, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setpshared(&attribute, PTHREAD_PROCESS_SHARED);
    REQUIRE(pthread_mutex_init(mutex, &attribute) == 0);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, die_with_it, NULL) == 0);
    pthread_join(thread, NULL);
    CHECK_TRUE("owner-thread-died", pthread_mutex_lock(mutex) == EOWNERDEAD);
    CHECK("make-consistent", pthread_mutex_consistent(mutex));
    CHECK("unlock", pthread_mutex_unlock(mutex));
    CHECK_CHILD("owner-process-killed", pthread_mutex_lock(mutex); raise(SIGKILL));
    CHECK_TRUE("owner-process-died", pthread_mutex_lock(mutex) == EOWNERDEAD);
    CHECK("unlock-without-repair", pthread_mutex_unlock(mutex));
    CHECK_TRUE("not-recoverable", pthread_mutex_lock(mutex) == ENOTRECOVERABLE);
    // A waiter in another process is woken by the death.
    REQUIRE(pthread_mutex_init(mutex, &attribute) == 0);
    int fds[2];
    REQUIRE(pipe(fds) == 0);
    pid_t owner = check_fork();
    if (owner == 0) {
        pthread_mutex_lock(mutex);
        REQUIRE(write(fds[1], "l", 1) == 1);
        check_sleep_ms(30);
        _exit(0);
    }
    char c;
    REQUIRE(read(fds[0], &c, 1) == 1);
    CHECK_TRUE("waiter-woken", pthread_mutex_lock(mutex) == EOWNERDEAD);
    check_wait(owner);
    struct {
        void *next;
        long offset;
        void *pending;
    } list = { &list, 0, NULL };
    CHECK("set-list", syscall(SYS_set_robust_list, &list, sizeof list));
    CHECK("set-list-bad-length", syscall(SYS_set_robust_list, &list, 5));
    void *head = NULL;
    size_t length = 0;
    CHECK("get-list", syscall(SYS_get_robust_list, 0, &head, &length));
    CHECK_TRUE("same-list", head == &list && length == sizeof list);
    // A lock that was released, by an owner that died before it could wake who waits for it.
    int *word = (int *)mutex + 512;
    *word = 0;
    pid_t waiter = check_fork();
    if (waiter == 0)
        _exit((int)syscall(SYS_futex, word, 0, 0, NULL, NULL, 0));
    do {
        pid_t releaser = check_fork();
        if (releaser == 0) {
            static struct {
                void *next;
                long offset;
                void *pending;
            } empty = { &empty, 0, NULL };
            empty.pending = word;
            syscall(SYS_set_robust_list, &empty, sizeof empty);
            _exit(0);
        }
        check_wait(releaser);
        check_sleep_ms(1);
    } while (waitpid(waiter, &(int){ 0 }, WNOHANG) == 0);
    CHECK_STR("waiter-of-released-lock", "woken");
    return 0;
}
