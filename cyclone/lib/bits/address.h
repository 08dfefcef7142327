// Addresses and ports of the internet, and the sizes of socket addresses.

#ifndef _BITS_ADDRESS_H_
#define _BITS_ADDRESS_H_
#include <bits/integers.h>
typedef unsigned int socklen_t;
typedef unsigned short sa_family_t;
typedef uint16_t in_port_t;
typedef uint32_t in_addr_t;
struct in_addr {
  in_addr_t s_addr;
};
struct sockaddr_in {
  sa_family_t sin_family;
  in_port_t sin_port;
  struct in_addr sin_addr;
  unsigned char sin_zero[8];
};
#endif
