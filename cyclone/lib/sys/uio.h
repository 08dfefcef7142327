// Reading into several buffers, and writing from several, with one call.

#ifndef _SYS_UIO_H_
#define _SYS_UIO_H_
__noinference__ {
#include <bits/types.h>

#define IOV_MAX 1024

// `iov_len` bytes of `iov_base` from `iov_skip` on. C has no `iov_skip`: it is for unique and counted pointers, which cannot be moved.
struct iovec<`q::Q,`r::E> {
  char ?@aqual(`q) @nozeroterm `r iov_base;
  size_t iov_len;
  size_t iov_skip;
};

// The first `count` vectors, at most IOV_MAX. Throw Array_bounds where a vector is not within its buffer.
extern ssize_t readv(int fd, struct iovec<`q,`r> ?`s vectors, int count; {`r,`s} : RESTRICTED >= `q);
extern ssize_t writev(int fd, const struct iovec<`q,`r> ?`s vectors, int count; {`r,`s} : RESTRICTED >= `q);

}
#endif
