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

/* Whether there may be so many vectors; sets errno where not. */
static bool may_be(int count) {
  if (count >= 0 && count <= IOV_MAX)
    return true;
  errno = EINVAL;
  return false;
}

/* The vectors as C's. */
static void convert(struct _cyc_fat vectors, int count, struct iovec *to) {
  if ((size_t)count > _cyc_fat_count(vectors, sizeof(struct vector)))
    _cyc_throw_bounds();
  for (int i = 0; i < count; i++) {
    const struct vector *v = (struct vector *)vectors.curr + i;
    size_t room = _cyc_room(v->base);
    if (v->length && (v->skip > room || v->length > room - v->skip))
      _cyc_throw_bounds();
    to[i] = (struct iovec){v->length ? v->base.curr + v->skip : NULL, v->length};
  }
}

/* The stack has no more of them than there are: programs are built so that all pages of what a function has there are touched. */

ssize_t Cyc_readv(int fd, struct _cyc_fat vectors, int count) {
  if (!may_be(count))
    return -1;
  struct iovec native[count + 1];
  convert(vectors, count, native);
  return _cyc_waiting(readv(fd, native, count));
}

ssize_t Cyc_writev(int fd, struct _cyc_fat vectors, int count) {
  if (!may_be(count))
    return -1;
  struct iovec native[count + 1];
  convert(vectors, count, native);
  return _cyc_waiting(writev(fd, native, count));
}
