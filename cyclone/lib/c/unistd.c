/* Descriptors, processes, waiting and memory mappings, with checked buffers and arguments. */
#define _GNU_SOURCE
#include "native.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

ssize_t Cyc_read(int fd, struct _cyc_fat buffer, size_t count) {
  if (count > _cyc_room(buffer))
    _cyc_fail("read: the buffer is too short");
  return _cyc_waiting(read(fd, buffer.curr, count));
}

ssize_t Cyc_write(int fd, struct _cyc_fat buffer, size_t count) {
  if (count > _cyc_room(buffer))
    _cyc_fail("write: the buffer is too short");
  return _cyc_waiting(write(fd, buffer.curr, count));
}

int Cyc_truncate(const char *name, long length) { return truncate(name, length); }

struct _cyc_fat Cyc_getcwd(struct _cyc_fat buffer, size_t size) {
  if (!buffer.curr || size > _cyc_room(buffer))
    _cyc_fail("getcwd: the buffer is too short");
  return getcwd((char *)buffer.curr, size) ? buffer : _cyc_fat_null;
}

int Cyc_gethostname(struct _cyc_fat buffer, size_t size) {
  if (!buffer.curr || size > _cyc_room(buffer))
    _cyc_fail("gethostname: the buffer is too short");
  return gethostname((char *)buffer.curr, size);
}

int Cyc_open(const char *name, int flags, struct _cyc_fat modes) {
  unsigned mode = _cyc_fat_count(modes, sizeof(unsigned)) ? *(unsigned *)modes.curr : 0;
  if (!name) {
    errno = EFAULT;
    return -1;
  }
  return _cyc_waiting(open(name, flags, mode));
}

/* The constructors of FcntlArg, in order. */
enum { FLOCK = 1, LONG };
struct flock_argument { int tag; struct flock *value; };
struct long_argument { int tag; long value; };

/* Only commands whose argument is known are passed on: others may have the kernel write to any address. */
int Cyc_fcntl(int fd, int command, struct _cyc_fat arguments) {
  size_t count = _cyc_fat_count(arguments, sizeof(void *));
  struct _cyc_tagged *a = count ? _cyc_argument(arguments, 0) : NULL;
  if (count > 1)
    _cyc_fail("fcntl: too many arguments");
  switch (command) {
  case F_GETLK: case F_SETLK: case F_SETLKW:
    if (!a || a->tag != FLOCK)
      _cyc_fail("fcntl: the command needs a lock");
    return _cyc_waiting(fcntl(fd, command, ((struct flock_argument *)a)->value));
  case F_DUPFD: case F_SETFD: case F_SETFL: case F_SETOWN: case F_DUPFD_CLOEXEC:
    if (!a || a->tag != LONG)
      _cyc_fail("fcntl: the command needs a number");
    return fcntl(fd, command, ((struct long_argument *)a)->value);
  case F_GETFD: case F_GETFL: case F_GETOWN:
    return fcntl(fd, command);
  default:
    errno = EINVAL;
    return -1;
  }
}

/* Only commands whose argument is one int. */
int Cyc_ioctl(int fd, int command, int *argument) {
  switch ((unsigned)command) {
  case FIONREAD: case FIONBIO: case FIOASYNC: case TIOCOUTQ: case 0x8905u /* SIOCATMARK */:
    return ioctl(fd, (unsigned)command, argument);
  default:
    errno = EINVAL;
    return -1;
  }
}

int Cyc_execlp(const char *path, const char *first, struct _cyc_fat others) {
  size_t count = _cyc_fat_count(others, sizeof(char *));
  char **given = (char **)others.curr;
  if (count == 0 || given[count - 1])
    _cyc_fail("execlp: the last argument is not NULL");
  char **arguments = _cyc_calloc(_cyc_bytes(count + 1, sizeof *arguments));
  arguments[0] = (char *)first;
  memcpy(arguments + 1, given, count * sizeof *given);
  return execvp(path, arguments);
}

/* ---- Waiting. */

unsigned Cyc_sleep(unsigned seconds) { return _cyc_waiting(sleep(seconds)); }
int Cyc_usleep(useconds_t micros) { return _cyc_waiting(usleep(micros)); }
int Cyc_pause(void) { return _cyc_waiting(pause()); }
pid_t Cyc_wait(int *status) { return _cyc_waiting(wait(status)); }
pid_t Cyc_waitpid(pid_t process, int *status, int options) { return _cyc_waiting(waitpid(process, status, options)); }

/* ---- Mappings. */

struct _cyc_fat Cyc_mmap(struct _cyc_fat place, size_t length, int protection, int flags, int fd, long offset) {
  (void)place;
  if (protection & PROT_EXEC || ((flags & MAP_PRIVATE) && (flags & MAP_SHARED)) || (flags & MAP_GROWSDOWN))
    _cyc_fail("mmap: these flags are not allowed");
  if (flags & MAP_FIXED)
    return _cyc_fat_null;
  void *mapped = mmap(NULL, length, protection, flags, fd, offset);
  return mapped == MAP_FAILED ? _cyc_fat_null : _cyc_fat_make(mapped, length);
}

/* The addresses stay taken, without memory behind them: a pointer that is left over faults and reaches nothing else. */
int Cyc_munmap(struct _cyc_fat place, size_t length) {
  if (!place.curr || place.curr != place.base || length > _cyc_room(place)) {
    errno = EINVAL;
    return -1;
  }
  void *mapped = mmap(place.curr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return mapped == MAP_FAILED ? -1 : 0;
}
