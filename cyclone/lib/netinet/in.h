// Addresses and protocols of the internet.

#ifndef _NETINET_IN_H_
#define _NETINET_IN_H_
__noinference__ {
#include <bits/address.h>

#define IPPROTO_IP 0
#define IPPROTO_ICMP 1
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define IPPROTO_RAW 255
#define IPPORT_RESERVED 1024
#define INADDR_ANY ((in_addr_t)0x00000000)
#define INADDR_LOOPBACK ((in_addr_t)0x7f000001)
#define INADDR_BROADCAST ((in_addr_t)0xffffffff)
#define INADDR_NONE ((in_addr_t)0xffffffff)
#define INET_ADDRSTRLEN 16

extern "C" uint32_t htonl(uint32_t);
extern "C" uint16_t htons(uint16_t);
extern "C" uint32_t ntohl(uint32_t);
extern "C" uint16_t ntohs(uint16_t);

}
#endif
