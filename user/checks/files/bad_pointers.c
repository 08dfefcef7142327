// EFAULT: calls that read or write user memory that is not there.
#include "../check.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>

int main(void)
{
    check_write_file("f", "some text in a file");
    int fd = open("f", O_RDWR);
    int pipe_fds[2];
    REQUIRE(fd >= 0 && pipe(pipe_fds) == 0);
    CHECK("open", syscall(SYS_open, BAD_POINTER, O_RDONLY));
    CHECK("stat-path", syscall(SYS_newfstatat, AT_FDCWD, BAD_POINTER, &(struct stat){ 0 }, 0));
    CHECK("stat-buffer", syscall(SYS_newfstatat, AT_FDCWD, "f", BAD_POINTER, 0));
    CHECK("fstat", syscall(SYS_fstat, fd, BAD_POINTER));
    CHECK("read", read(fd, BAD_POINTER, 4));
    CHECK("write", write(fd, BAD_POINTER, 4));
    CHECK("write-pipe", write(pipe_fds[1], BAD_POINTER, 4));
    CHECK("pipe", syscall(SYS_pipe2, BAD_POINTER, 0));
    CHECK("getcwd", syscall(SYS_getcwd, BAD_POINTER, 100));
    CHECK("chdir", syscall(SYS_chdir, BAD_POINTER));
    CHECK("mkdir", syscall(SYS_mkdir, BAD_POINTER, 0755));
    CHECK("unlink", syscall(SYS_unlink, BAD_POINTER));
    CHECK("rename-old", syscall(SYS_rename, BAD_POINTER, "x"));
    CHECK("rename-new", syscall(SYS_rename, "f", BAD_POINTER));
    CHECK("readlink", syscall(SYS_readlink, "/proc/self/exe", BAD_POINTER, 100));
    CHECK("uname", syscall(SYS_uname, BAD_POINTER));
    CHECK("sysinfo", syscall(SYS_sysinfo, BAD_POINTER));
    CHECK("times", syscall(SYS_times, BAD_POINTER));
    CHECK("getrusage", syscall(SYS_getrusage, RUSAGE_SELF, BAD_POINTER));
    CHECK("getrlimit", syscall(SYS_getrlimit, RLIMIT_NOFILE, BAD_POINTER));
    CHECK("setrlimit", syscall(SYS_setrlimit, RLIMIT_NOFILE, BAD_POINTER));
    CHECK("clock-gettime", syscall(SYS_clock_gettime, CLOCK_MONOTONIC, BAD_POINTER));
    CHECK("nanosleep", syscall(SYS_nanosleep, BAD_POINTER, NULL));
    CHECK("poll", syscall(SYS_poll, BAD_POINTER, 1, 0));
    CHECK("select", syscall(SYS_select, 1, BAD_POINTER, NULL, NULL, NULL));
    CHECK("sigaction-new", syscall(SYS_rt_sigaction, SIGUSR1, BAD_POINTER, NULL, 8));
    CHECK("sigaction-old", syscall(SYS_rt_sigaction, SIGUSR1, NULL, BAD_POINTER, 8));
    CHECK("sigprocmask-new", syscall(SYS_rt_sigprocmask, SIG_BLOCK, BAD_POINTER, NULL, 8));
    CHECK("sigprocmask-old", syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, BAD_POINTER, 8));
    CHECK("execve", syscall(SYS_execve, BAD_POINTER, NULL, NULL));
    CHECK("execve-arguments", syscall(SYS_execve, "/proc/self/exe", BAD_POINTER, NULL));
    CHECK("getrandom", syscall(SYS_getrandom, BAD_POINTER, 16, 0));
    CHECK("futex", syscall(SYS_futex, BAD_POINTER, 0, 0, NULL, NULL, 0));
    CHECK("getdents", syscall(SYS_getdents64, open(".", O_RDONLY), BAD_POINTER, 512));
    CHECK("setgroups", syscall(SYS_setgroups, 1, BAD_POINTER));
    CHECK("kernel-address", write(fd, (void *)0xffff800000000000, 4));
    CHECK("non-canonical", write(fd, (void *)0x8000000000000000, 4));
    int epoll = epoll_create1(0);
    CHECK("epoll-ctl", syscall(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, pipe_fds[0], BAD_POINTER));
    struct epoll_event event = { .events = EPOLLOUT };
    REQUIRE(epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_fds[1], &event) == 0);
    CHECK("epoll-wait", syscall(SYS_epoll_wait, epoll, BAD_POINTER, 1, 0));
    pid_t pid = check_fork();
    if (pid == 0)
        _exit(3);
    CHECK("wait4", syscall(SYS_wait4, pid, BAD_POINTER, 0, NULL));

    // A buffer that ends at an unmapped page: what fits is transferred, or nothing.
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(pages != MAP_FAILED && munmap(pages + 4096, 4096) == 0);
    strcpy(pages + 4096 - 2, "f");
    CHECK_TRUE("path-ends-at-page-end", open(pages + 4096 - 2, O_RDONLY) >= 0);
    pages[4095] = 'f';
    CHECK("path-runs-off-page", open(pages + 4095, O_RDONLY));
    CHECK("buffer-runs-off-page", syscall(SYS_fstat, fd, pages + 4096 - 16));
    char *read_only = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK("read-into-read-only", read(fd, read_only, 4));
    char *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK("write-from-no-access", write(fd, none, 4));
    return 0;
}
