/* Several buffers with one call. */
#define _GNU_SOURCE
#include "native.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/uio.h>

/* sys/uio.h's `struct iovec`. */
struct vector {
  struct _cyc_fat base;
  size_t length, skip;
};

/* The vectors as C's; false where there may not be so many. */
static bool convert(struct _cyc_fat vectors, int count, struct iovec to[IOV_MAX]) {
  if (count < 0 || count > IOV_MAX) {
    errno = EINVAL;
    return false;
  }
  if ((size_t)count > _cyc_fat_count(vectors, sizeof(struct vector)))
    _cyc_throw_bounds();
  for (int i = 0; i < count; i++) {
    const struct vector *v = (struct vector *)vectors.curr + i;
    size_t room = _cyc_room(v->base);
    if (v->length && (v->skip > room || v->length > room - v->skip))
      _cyc_throw_bounds();
    to[i] = (struct iovec){v->length ? v->base.curr + v->skip : NULL, v->length};
  }
  return true;
}

ssize_t Cyc_readv(int fd, struct _cyc_fat vectors, int count) {
  struct iovec native[IOV_MAX];
  return convert(vectors, count, native) ? _cyc_waiting(readv(fd, native, count)) : -1;
}

ssize_t Cyc_writev(int fd, struct _cyc_fat vectors, int count) {
  struct iovec native[IOV_MAX];
  return convert(vectors, count, native) ? _cyc_waiting(writev(fd, native, count)) : -1;
}
