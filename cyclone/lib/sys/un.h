// Addresses of local sockets.

#ifndef _SYS_UN_H_
#define _SYS_UN_H_
__noinference__ {
#include <bits/address.h>

struct sockaddr_un {
  sa_family_t sun_family;
  char sun_path[108];
};

}
#endif
