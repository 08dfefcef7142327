// What every behaviour check shares: one line of output per checked fact, `name: value`.
//
// A check program runs with no arguments in a fresh, writable directory, as root, on Linux and on Ebb, and must
// print the same on both. So a value is never a time, an address or an identifier, and no verdict may depend on how quick or
// busy the machine is: a program waits for what must happen, however long that takes, and compares times in one direction
// only. Each program ends by itself: an alarm that nothing resets kills it after five minutes (and each child after four), which only
// a hang reaches.
//
// Include this file first: it selects the GNU declarations of the C library.
#ifndef EBB_CHECK_H
#define EBB_CHECK_H
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// Prints the value of an integer expression; -1 is followed by the name of the error in `errno`.
#define CHECK(name, expr)                     \
    do {                                      \
        errno = 0;                            \
        long check_value = (long)(expr);      \
        check_result(name, check_value, errno); \
    } while (0)

// Prints the error of a call that should give a pointer, or `ok`.
#define CHECK_MAP(name, expr)                               \
    do {                                                    \
        errno = 0;                                          \
        void *check_address = (void *)(expr);               \
        if (check_address == (void *)-1)                    \
            check_result(name, -1, errno);                  \
        else                                                \
            check_line("%s: ok\n", name);                   \
    } while (0)

// Prints `yes` or `no`.
#define CHECK_TRUE(name, condition) check_line("%s: %s\n", name, (condition) ? "yes" : "no")

// As CHECK_TRUE, for what holds on a quiet machine and a busy one can spoil (what little time something took): tried
// again until it holds, and `no` only if it never does. The condition does all of the work anew each time.
#define CHECK_SOON(name, condition)                                       \
    do {                                                                  \
        int check_tries = 0;                                              \
        while (!(condition) && ++check_tries < CHECK_TRIES)               \
            check_sleep_ms(check_tries);                                  \
        CHECK_TRUE(name, check_tries < CHECK_TRIES);                      \
    } while (0)
#define CHECK_TRIES 100

// Prints a string.
#define CHECK_STR(name, string) check_line("%s: %s\n", name, string)

// Prints how a process ended (or stopped), from the status that `wait` gives.
#define CHECK_STATUS(name, status) check_status(name, status)

// Runs a block in a child process and prints how the child ended. A block that runs to its end exits with 0.
#define CHECK_CHILD(name, ...)                      \
    do {                                            \
        pid_t check_pid = check_fork();             \
        if (check_pid == 0) {                       \
            __VA_ARGS__;                            \
            _exit(0);                               \
        }                                           \
        check_status(name, check_wait(check_pid));  \
    } while (0)

// A step that the checks rely on: if it fails, the program says where and ends.
#define REQUIRE(condition)                                                                       \
    do {                                                                                         \
        if (!(condition)) {                                                                      \
            check_line("%s:%d: required: %s (%s)\n", check_base(__FILE__), __LINE__, #condition, \
                       check_errno_name(errno));                                                 \
            _exit(99);                                                                           \
        }                                                                                        \
    } while (0)

// An address that is never mapped, for calls that must fail with EFAULT.
#define BAD_POINTER ((void *)(uintptr_t)0x10)

// Writes one line in one system call, so that no buffered text is printed twice after a fork.
__attribute__((format(printf, 1, 2))) static inline void check_line(const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof line)
        length = sizeof line - 1;
    if (write(1, line, length) != length)
        _exit(98);
}

static inline const char *check_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static inline const char *check_errno_name(int error)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {
#define E(name) { name, #name }
        E(EPERM), E(ENOENT), E(ESRCH), E(EINTR), E(EIO), E(ENXIO), E(E2BIG), E(ENOEXEC), E(EBADF), E(ECHILD),
        E(EAGAIN), E(ENOMEM), E(EACCES), E(EFAULT), E(ENOTBLK), E(EBUSY), E(EEXIST), E(EXDEV), E(ENODEV),
        E(ENOTDIR), E(EISDIR), E(EINVAL), E(ENFILE), E(EMFILE), E(ENOTTY), E(ETXTBSY), E(EFBIG), E(ENOSPC),
        E(ESPIPE), E(EROFS), E(EMLINK), E(EPIPE), E(EDOM), E(ERANGE), E(EDEADLK), E(ENAMETOOLONG), E(ENOLCK),
        E(ENOSYS), E(ENOTEMPTY), E(ELOOP), E(ENOMSG), E(EIDRM), E(ENODATA), E(ETIME), E(EOVERFLOW), E(EILSEQ), E(ENOTSOCK),
        E(EOPNOTSUPP), E(ETIMEDOUT), E(EALREADY), E(EINPROGRESS), E(ECANCELED), E(EOWNERDEAD), E(ENOTRECOVERABLE),
        E(EADDRINUSE), E(ECONNREFUSED), E(EISCONN), E(EPROTOTYPE), E(EDESTADDRREQ), E(ETOOMANYREFS), E(EMSGSIZE), E(ENOTCONN), E(ECONNRESET), E(EAFNOSUPPORT),
#undef E
    };
    static char unknown[24];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].number == error)
            return names[i].name;
    snprintf(unknown, sizeof unknown, "errno %d", error);
    return unknown;
}

static inline const char *check_signal_name(int number)
{
    static const char *const names[] = {
        "0", "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1",
        "SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGCHLD", "SIGCONT", "SIGSTOP",
        "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH",
        "SIGIO", "SIGPWR", "SIGSYS",
    };
    static char other[24];
    if (number >= 0 && number < 32)
        return names[number];
    snprintf(other, sizeof other, "signal %d", number);
    return other;
}

static inline void check_result(const char *name, long value, int error)
{
    if (value == -1 && error != 0)
        check_line("%s: -1 %s\n", name, check_errno_name(error));
    else
        check_line("%s: %ld\n", name, value);
}

static inline void check_status(const char *name, int status)
{
    if (WIFEXITED(status))
        check_line("%s: exit %d\n", name, WEXITSTATUS(status));
    else if (WIFSIGNALED(status))
        check_line("%s: killed by %s\n", name, check_signal_name(WTERMSIG(status)));
    else if (WIFSTOPPED(status))
        check_line("%s: stopped by %s\n", name, check_signal_name(WSTOPSIG(status)));
    else if (WIFCONTINUED(status))
        check_line("%s: continued\n", name);
    else
        check_line("%s: status %#x\n", name, (unsigned)status);
}

// Seconds after which a program that hangs is killed, and a child of one.
#define CHECK_LIMIT 300
#define CHECK_CHILD_LIMIT 240

// Forks a child that cannot outlive its limit.
static inline pid_t check_fork(void)
{
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0)
        alarm(CHECK_CHILD_LIMIT);
    return pid;
}

// Waits for the end of a child and gives its status.
static inline int check_wait(pid_t pid)
{
    int status = -1;
    pid_t got;
    do
        got = waitpid(pid, &status, 0);
    while (got == -1 && errno == EINTR);
    REQUIRE(got == pid);
    return status;
}

// For what Linux has not, or does in another way.
static inline int is_ebb(void)
{
    struct utsname name;
    return uname(&name) == 0 && strstr(name.release, "ebb") != NULL;
}

// Suspends the calling thread; signals do not shorten it.
static inline void check_sleep_ms(long ms)
{
    struct timespec left = { ms / 1000, ms % 1000 * 1000000 };
    while (nanosleep(&left, &left) == -1 && errno == EINTR)
        ;
}

// The monotonic clock in milliseconds, for comparisons whose result is printed instead of the time.
static inline long check_now_ms(void)
{
    struct timespec now;
    REQUIRE(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// Creates (or empties) a file with the given text.
static inline void check_write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    REQUIRE(fd >= 0);
    REQUIRE(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    REQUIRE(close(fd) == 0);
}

// The text of a small file, or the name of the error that opening or reading it gave.
static inline const char *check_read_file(const char *path)
{
    static char text[4096];
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return check_errno_name(errno);
    size_t length = 0;
    ssize_t got;
    while (length < sizeof text - 1 && (got = read(fd, text + length, sizeof text - 1 - length)) > 0)
        length += got;
    close(fd);
    text[length] = 0;
    while (length > 0 && text[length - 1] == '\n')
        text[--length] = 0;
    return text;
}

// Seconds that were left of an alarm from before this program was started by exec; 0 for a fresh start.
static unsigned check_alarm_left;

__attribute__((constructor)) static void check_start(void)
{
    check_alarm_left = alarm(CHECK_LIMIT);
    if (check_alarm_left == 0)
        umask(022);
}
#endif
