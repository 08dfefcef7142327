/* Sockets: arguments that were injected into datatypes are matched here, and lengths are held to what the values have. */
#define _GNU_SOURCE
#include "native.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

const char _cyc_exn_SocketError[] = "SocketError";

static _Noreturn void socket_error(void) {
  static struct {
    const char *tag;
  } error = {_cyc_exn_SocketError};
  _cyc_throw(&error);
}

/* The constructors of SockAddr and of SockOpt, in order. */
enum { ADDRESS = 1, ADDRESS_LENGTH_AT, ADDRESS_LENGTH };
enum { NUMBER = 1, TIME, LINGER, TEXT, OPTION_LENGTH_AT, OPTION_LENGTH };

struct pointer_argument { int tag; void *value; };
struct length_argument { int tag; socklen_t value; };
struct text_argument { int tag; struct _cyc_fat value; };

/* The two arguments that every call here has. */
static void two(struct _cyc_fat arguments, struct _cyc_tagged **first, struct _cyc_tagged **second) {
  if (_cyc_fat_count(arguments, sizeof(void *)) != 2)
    socket_error();
  *first = _cyc_argument(arguments, 0);
  *second = _cyc_argument(arguments, 1);
}

static void *pointer(struct _cyc_tagged *a) { return ((struct pointer_argument *)a)->value; }

/* An address that is given. */
static const struct sockaddr *given(struct _cyc_fat arguments, socklen_t *length) {
  struct _cyc_tagged *address, *size;
  two(arguments, &address, &size);
  if (address->tag != ADDRESS || size->tag != ADDRESS_LENGTH)
    socket_error();
  *length = ((struct length_argument *)size)->value;
  if (*length > sizeof(struct sockaddr_in))
    socket_error();
  return pointer(address);
}

/* Room for an address that is asked for, and where its length is. */
static struct sockaddr *asked(struct _cyc_fat arguments, socklen_t **length) {
  struct _cyc_tagged *address, *size;
  two(arguments, &address, &size);
  if (address->tag != ADDRESS || size->tag != ADDRESS_LENGTH_AT)
    socket_error();
  *length = pointer(size);
  if (**length > sizeof(struct sockaddr_in))
    **length = sizeof(struct sockaddr_in);
  return pointer(address);
}

int Cyc_accept(int fd, struct _cyc_fat arguments) {
  socklen_t *length;
  struct sockaddr *address = asked(arguments, &length);
  /* Another thread may change the length meanwhile. */
  socklen_t room = *length;
  int accepted = _cyc_waiting(accept(fd, address, &room));
  *length = room;
  return accepted;
}

int Cyc_getpeername(int fd, struct _cyc_fat arguments) {
  socklen_t *length;
  struct sockaddr *address = asked(arguments, &length);
  return getpeername(fd, address, length);
}

int Cyc_getsockname(int fd, struct _cyc_fat arguments) {
  socklen_t *length;
  struct sockaddr *address = asked(arguments, &length);
  return getsockname(fd, address, length);
}

int Cyc_bind(int fd, struct _cyc_fat arguments) {
  socklen_t length;
  const struct sockaddr *address = given(arguments, &length);
  return bind(fd, address, length);
}

int Cyc_connect(int fd, struct _cyc_fat arguments) {
  socklen_t length;
  const struct sockaddr *address = given(arguments, &length);
  return _cyc_waiting(connect(fd, address, length));
}

/* The bytes of an option's value. */
static socklen_t size_of_option(const struct _cyc_tagged *value) {
  switch (value->tag) {
  case NUMBER: return sizeof(int);
  case TIME: return sizeof(struct timeval);
  case LINGER: return sizeof(struct linger);
  default: socket_error();
  }
}

/* The length may also be held in an int. */
int Cyc_getsockopt(int fd, int level, int name, struct _cyc_fat arguments) {
  struct _cyc_tagged *value, *size;
  two(arguments, &value, &size);
  if (size->tag != OPTION_LENGTH_AT && size->tag != NUMBER)
    socket_error();
  socklen_t *length = pointer(size), most = size_of_option(value);
  if (*length > most)
    *length = most;
  return getsockopt(fd, level, name, pointer(value), length);
}

/* A text is for setting only: it may be constant. */
int Cyc_setsockopt(int fd, int level, int name, struct _cyc_fat arguments) {
  struct _cyc_tagged *value, *size;
  two(arguments, &value, &size);
  if (size->tag != OPTION_LENGTH)
    socket_error();
  socklen_t length = ((struct length_argument *)size)->value;
  if (value->tag == TEXT) {
    struct _cyc_fat text = ((struct text_argument *)value)->value;
    if (length > _cyc_room(text))
      socket_error();
    return setsockopt(fd, level, name, text.curr, length);
  }
  if (length > size_of_option(value))
    socket_error();
  return setsockopt(fd, level, name, pointer(value), length);
}

static void need(struct _cyc_fat buffer, size_t count) {
  if (count > _cyc_room(buffer))
    _cyc_throw_bounds();
}

ssize_t Cyc_recv(int fd, struct _cyc_fat buffer, size_t count, int flags) {
  need(buffer, count);
  /* MSG_TRUNC's result may exceed the buffer: programs take the result as the length of what is there. */
  return _cyc_waiting(recv(fd, buffer.curr, count, flags & ~MSG_TRUNC));
}

ssize_t Cyc_send(int fd, struct _cyc_fat buffer, size_t count, int flags) {
  need(buffer, count);
  return _cyc_waiting(send(fd, buffer.curr, count, flags));
}

ssize_t Cyc_recvfrom(int fd, struct _cyc_fat buffer, size_t count, int flags, struct _cyc_fat arguments) {
  socklen_t *length;
  struct sockaddr *address = asked(arguments, &length);
  need(buffer, count);
  socklen_t room = *length;
  ssize_t received = _cyc_waiting(recvfrom(fd, buffer.curr, count, flags & ~MSG_TRUNC, address, &room));
  *length = room;
  return received;
}

ssize_t Cyc_sendto(int fd, struct _cyc_fat buffer, size_t count, int flags, struct _cyc_fat arguments) {
  socklen_t length;
  const struct sockaddr *address = given(arguments, &length);
  need(buffer, count);
  return _cyc_waiting(sendto(fd, buffer.curr, count, flags, address, length));
}
