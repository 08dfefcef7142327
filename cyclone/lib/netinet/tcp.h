// Options of TCP sockets.

#ifndef _NETINET_TCP_H_
#define _NETINET_TCP_H_
__noinference__ {
#define TCP_NODELAY 1
#define TCP_MAXSEG 2
#define TCP_CORK 3
#define TCP_KEEPIDLE 4
#define TCP_KEEPINTVL 5
#define TCP_KEEPCNT 6
#define TCP_CONGESTION 13

}
#endif
