// Sockets. Addresses and options are injected into datatypes, so that a wrong kind or a wrong length throws SocketError
// instead of reaching the kernel; buffers are checked.

#ifndef _SYS_SOCKET_H_
#define _SYS_SOCKET_H_
__noinference__ {
#include <bits/timeval.h>
#include <bits/address.h>

#define AF_UNSPEC 0
#define AF_UNIX 1
#define AF_LOCAL AF_UNIX
#define AF_INET 2
#define AF_INET6 10
#define PF_UNSPEC AF_UNSPEC
#define PF_UNIX AF_UNIX
#define PF_LOCAL AF_UNIX
#define PF_INET AF_INET
#define PF_INET6 AF_INET6
#define SOCK_STREAM 1
#define SOCK_DGRAM 2
#define SOCK_RAW 3
#define SOCK_SEQPACKET 5
#define SOCK_NONBLOCK 04000
#define SOCK_CLOEXEC 02000000
#define SOL_SOCKET 1
#define SO_DEBUG 1
#define SO_REUSEADDR 2
#define SO_TYPE 3
#define SO_ERROR 4
#define SO_DONTROUTE 5
#define SO_BROADCAST 6
#define SO_SNDBUF 7
#define SO_RCVBUF 8
#define SO_KEEPALIVE 9
#define SO_OOBINLINE 10
#define SO_LINGER 13
#define SO_REUSEPORT 15
#define SO_RCVLOWAT 18
#define SO_SNDLOWAT 19
#define SO_RCVTIMEO 20
#define SO_SNDTIMEO 21
#define SO_ACCEPTCONN 30
#define SOMAXCONN 4096
#define MSG_OOB 0x01
#define MSG_PEEK 0x02
#define MSG_DONTROUTE 0x04
#define MSG_CTRUNC 0x08
#define MSG_TRUNC 0x20
#define MSG_DONTWAIT 0x40
#define MSG_EOR 0x80
#define MSG_WAITALL 0x100
#define MSG_NOSIGNAL 0x4000
#define SHUT_RD 0
#define SHUT_WR 1
#define SHUT_RDWR 2

struct sockaddr {
  sa_family_t sa_family;
  char sa_data[14];
};
struct linger {
  int l_onoff;
  int l_linger;
};

extern datatype SockAddr<`r::E> {
  SA_sockaddr_in(struct sockaddr_in @`r);
  SA_socklenptr(socklen_t @`r);
  SA_socklen(socklen_t);
};
typedef datatype SockAddr<`r> @`r SA<`r>;

extern datatype SockOpt<`r::E> {
  SO_int(int @`r);
  SO_timeval(struct timeval @`r);
  SO_linger(struct linger @`r);
  SO_text(const char ?`r); // to set only; before the numbers, which a literal would be taken for
  SO_socklenptr(socklen_t @`r);
  SO_socklen(socklen_t);
};
typedef datatype SockOpt<`r> @`r SO<`r>;

extern datatype exn { extern SocketError };

// After the descriptor: the address and its length, or where the length is (accept, getpeername, getsockname).
extern int accept(int fd, ... inject SA);
extern int bind(int fd, ... inject SA);
extern int connect(int fd, ... inject SA);
extern int getpeername(int fd, ... inject SA);
extern int getsockname(int fd, ... inject SA);
// After the name of the option: its value and the length of it, or where the length is (getsockopt).
extern int getsockopt(int fd, int level, int optname, ... inject SO);
extern int setsockopt(int fd, int level, int optname, ... inject SO);

extern ssize_t recv(int fd, char ? @nozeroterm buf, size_t n, int flags);
extern ssize_t recvfrom(int fd, char ? @nozeroterm buf, size_t n, int flags, ... inject SA);
extern ssize_t send(int fd, const char ? @nozeroterm buf, size_t n, int flags);
extern ssize_t sendto(int fd, const char ? @nozeroterm buf, size_t n, int flags, ... inject SA);

extern "C" int listen(int fd, int n);
extern "C" int shutdown(int fd, int how);
extern "C" int sockatmark(int);
extern "C" int socket(int domain, int type, int protocol);
extern "C" int socketpair(int domain, int type, int protocol, int @{2} fds);

}
#endif
