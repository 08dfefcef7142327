/* Time, and waiting for descriptors. */
#define _GNU_SOURCE
#include "native.h"

#include <errno.h>
#include <poll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>

int Cyc_gettimeofday(struct timeval *now, void *zone) {
  (void)zone;
  return gettimeofday(now, NULL);
}

size_t Cyc_strftime(struct _cyc_fat buffer, size_t size, struct _cyc_fat format, const struct tm *time) {
  if (size > _cyc_room(buffer))
    _cyc_fail("strftime: the buffer is too short");
  const char *c_format = _cyc_c_text(format);
  return c_format && size ? strftime((char *)buffer.curr, size, c_format, time) : 0;
}

int Cyc_poll(struct _cyc_fat entries, nfds_t count, int timeout) {
  size_t most = _cyc_fat_count(entries, sizeof(struct pollfd));
  if (count && !most)
    _cyc_fail("poll: no entries");
  return _cyc_waiting(poll((struct pollfd *)entries.curr, count < most ? count : most, timeout));
}

int Cyc_nanosleep(const struct timespec *time, struct timespec *rest) { return _cyc_waiting(nanosleep(time, rest)); }

int Cyc_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *rest) {
  return _cyc_waiting(clock_nanosleep(clock, flags, time, rest));
}

/* Whether the sets have a place for every descriptor below `n`. */
static int in_range(int n) {
  if (n >= 0 && n <= FD_SETSIZE)
    return 1;
  errno = EINVAL;
  return 0;
}

int Cyc_select(int n, fd_set *reading, fd_set *writing, fd_set *errors, struct timeval *timeout) {
  return in_range(n) ? _cyc_waiting(select(n, reading, writing, errors, timeout)) : -1;
}

int Cyc_pselect(int n, fd_set *reading, fd_set *writing, fd_set *errors, const struct timespec *timeout,
                const sigset_t *mask) {
  return in_range(n) ? _cyc_waiting(pselect(n, reading, writing, errors, timeout, mask)) : -1;
}

static int has_place(int fd) { return fd >= 0 && fd < FD_SETSIZE; }

void Cyc_FD_CLR(int fd, fd_set *set) {
  if (has_place(fd))
    FD_CLR(fd, set);
}

int Cyc_FD_ISSET(int fd, fd_set *set) { return has_place(fd) && FD_ISSET(fd, set); }

void Cyc_FD_SET(int fd, fd_set *set) {
  if (has_place(fd))
    FD_SET(fd, set);
}

void Cyc_FD_ZERO(fd_set *set) { FD_ZERO(set); }
