// Files, processes and identities. Functions that fill or read a buffer check its length and throw Core::Failure if it is too
// short.

#ifndef _UNISTD_H_
#define _UNISTD_H_
__noinference__ {
#include <bits/types.h>
#include <getopt.h>

#define STDIN_FILENO 0
#define STDOUT_FILENO 1
#define STDERR_FILENO 2
#define F_OK 0
#define X_OK 1
#define W_OK 2
#define R_OK 4
#define F_ULOCK 0
#define F_LOCK 1
#define F_TLOCK 2
#define F_TEST 3
#ifndef SEEK_SET
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2
#endif
#define _SC_ARG_MAX 0
#define _SC_CHILD_MAX 1
#define _SC_CLK_TCK 2
#define _SC_NGROUPS_MAX 3
#define _SC_OPEN_MAX 4
#define _SC_PAGESIZE 30
#define _SC_PAGE_SIZE 30
#define _SC_NPROCESSORS_CONF 83
#define _SC_NPROCESSORS_ONLN 84
#define _SC_PHYS_PAGES 85
#define _SC_HOST_NAME_MAX 180
#define _PC_LINK_MAX 0
#define _PC_NAME_MAX 3
#define _PC_PATH_MAX 4
#define _PC_PIPE_BUF 5

extern "C" int access(const char @, int);
extern "C" unsigned alarm(unsigned);
extern "C" int chdir(const char @);
extern "C" int chown(const char @, uid_t, gid_t);
extern "C" int chroot(const char @);
extern "C" int close(int);
extern "C" int dup(int);
extern "C" int dup2(int, int);
extern "C" void _exit(int);
extern "C" int fchown(int, uid_t, gid_t);
extern "C" int fchdir(int);
extern "C" int fdatasync(int);
extern "C" pid_t fork(void);
extern "C" long fpathconf(int, int);
extern "C" int fsync(int);
extern "C" int ftruncate(int, off_t);
extern "C" gid_t getegid(void);
extern "C" uid_t geteuid(void);
extern "C" gid_t getgid(void);
extern "C" long gethostid(void);
extern "C" pid_t getpgid(pid_t);
extern "C" pid_t getpgrp(void);
extern "C" pid_t getpid(void);
extern "C" pid_t getppid(void);
extern "C" pid_t getsid(pid_t);
extern "C" uid_t getuid(void);
extern "C" int isatty(int);
extern "C" int link(const char @, const char @);
extern "C" int lockf(int, int, off_t);
extern "C" off_t lseek(int, off_t, int);
extern "C" int nice(int);
extern int pause(void);
extern "C" int pipe(int @{2});
extern "C" int rmdir(const char @);
extern "C" int setegid(gid_t);
extern "C" int seteuid(uid_t);
extern "C" int setgid(gid_t);
extern "C" int setpgid(pid_t, pid_t);
extern "C" pid_t setpgrp(void);
extern "C" int setregid(gid_t, gid_t);
extern "C" int setreuid(uid_t, uid_t);
extern "C" pid_t setsid(void);
extern "C" int setuid(uid_t);
extern unsigned sleep(unsigned);
extern "C" int symlink(const char @, const char @);
extern "C" void sync(void);
extern "C" long sysconf(int);
extern "C" pid_t tcgetpgrp(int);
extern "C" int tcsetpgrp(int, pid_t);
extern "C" useconds_t ualarm(useconds_t, useconds_t);
extern "C" int unlink(const char @);
extern int usleep(useconds_t);
extern int truncate(const char @, off_t);

extern ssize_t read(int, char ? @nozeroterm, size_t);
extern ssize_t write(int, const char ? @nozeroterm, size_t);
extern char ?`r getcwd(char ?`r buf, size_t size);
extern int gethostname(char ? @nozeroterm, size_t);

// The last of execlp's arguments must be NULL.
extern int execlp(const char @, const char @`r, ... const char *`r);
extern "C" int execvp(const char @, const char ** @zeroterm);
extern "C" int execve(const char @, char *@aqual(`q\T) `r::E* @zeroterm argv, char *@aqual(`q2\T) `r2::E* @zeroterm envp);

}
#endif
