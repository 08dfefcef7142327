// The layouts and numbers of netlink(7), rtnetlink(7), sock_diag(7) and packet(7): the C library that the checks are built with has no headers of the kernel.
#ifndef EBB_NETLINK_ABI_H
#define EBB_NETLINK_ABI_H
#include <stdint.h>
#include <sys/socket.h>

enum { NETLINK_ROUTE = 0, NETLINK_SOCK_DIAG = 4, NETLINK_KOBJECT_UEVENT = 15, NETLINK_GENERIC = 16 };
enum { NLM_F_REQUEST = 1, NLM_F_ACK = 4, NLM_F_DUMP = 0x300, NLM_F_EXCL = 0x200, NLM_F_CREATE = 0x400 };
enum { NLMSG_ERROR = 2, NLMSG_DONE = 3, NLA_TYPE_MASK = 0x3fff };
#ifndef SOL_NETLINK
#define SOL_NETLINK 270
#endif
enum { NETLINK_ADD_MEMBERSHIP = 1, NETLINK_DROP_MEMBERSHIP = 2, NETLINK_CAP_ACK = 10, NETLINK_EXT_ACK = 11, NETLINK_GET_STRICT_CHK = 12 };

struct sockaddr_nl { uint16_t nl_family, nl_pad; uint32_t nl_pid, nl_groups; };
struct nlmsghdr { uint32_t nlmsg_len; uint16_t nlmsg_type, nlmsg_flags; uint32_t nlmsg_seq, nlmsg_pid; };
struct nlmsgerr { int error; struct nlmsghdr msg; };
struct rtattr { uint16_t rta_len, rta_type; };

#define NLMSG_ALIGN(len) (((len) + 3u) & ~3u)
#define NLMSG_LENGTH(len) ((len) + sizeof(struct nlmsghdr))
#define NLMSG_DATA(message) ((void *)((char *)(message) + sizeof(struct nlmsghdr)))
#define NLMSG_OK(message, left) ((left) >= (ssize_t)sizeof(struct nlmsghdr) && (message)->nlmsg_len >= sizeof(struct nlmsghdr) && (ssize_t)(message)->nlmsg_len <= (left))
#define NLMSG_NEXT(message, left) ((left) -= NLMSG_ALIGN((message)->nlmsg_len), (struct nlmsghdr *)((char *)(message) + NLMSG_ALIGN((message)->nlmsg_len)))
#define RTA_ALIGN NLMSG_ALIGN
#define RTA_LENGTH(len) ((len) + sizeof(struct rtattr))
#define RTA_DATA(at) ((void *)((char *)(at) + sizeof(struct rtattr)))
#define RTA_OK(at, left) ((left) >= (int)sizeof(struct rtattr) && (at)->rta_len >= sizeof(struct rtattr) && (at)->rta_len <= (left))
#define RTA_NEXT(at, left) ((left) -= RTA_ALIGN((at)->rta_len), (struct rtattr *)((char *)(at) + RTA_ALIGN((at)->rta_len)))

// rtnetlink.
enum { RTM_NEWLINK = 16, RTM_GETLINK = 18, RTM_SETLINK = 19, RTM_NEWADDR = 20, RTM_DELADDR = 21, RTM_NEWROUTE = 24, RTM_DELROUTE = 25, RTM_GETROUTE = 26, RTM_NEWRULE = 32, RTM_GETRULE = 34 };
enum { RTNLGRP_LINK = 1, RTNLGRP_IPV4_IFADDR = 5 };
enum { IFA_ADDRESS = 1, IFA_LOCAL = 2 };
enum { RTA_DST = 1, RTA_OIF = 4, RTA_PREFSRC = 7 };
enum { RT_TABLE_MAIN = 254, RTN_UNICAST = 1, RT_SCOPE_NOWHERE = 255 };
struct ifinfomsg { uint8_t ifi_family, pad; uint16_t ifi_type; int32_t ifi_index; uint32_t ifi_flags, ifi_change; };
struct ifaddrmsg { uint8_t ifa_family, ifa_prefixlen, ifa_flags, ifa_scope; uint32_t ifa_index; };
struct rtmsg { uint8_t rtm_family, rtm_dst_len, rtm_src_len, rtm_tos, rtm_table, rtm_protocol, rtm_scope, rtm_type; uint32_t rtm_flags; };

// sock_diag.
enum { SOCK_DIAG_BY_FAMILY = 20, INET_DIAG_INFO = 2, INET_DIAG_CONG = 4, INET_DIAG_SHUTDOWN = 8, INET_DIAG_REQ_BYTECODE = 1 };
enum { INET_DIAG_BC_S_LE = 3, INET_DIAG_BC_D_EQ = 12 };
#define INET_DIAG_NOCOOKIE (~0u)
struct inet_diag_sockid { uint16_t idiag_sport, idiag_dport; uint32_t idiag_src[4], idiag_dst[4], idiag_if, idiag_cookie[2]; };
struct inet_diag_req_v2 { uint8_t sdiag_family, sdiag_protocol, idiag_ext, pad; uint32_t idiag_states; struct inet_diag_sockid id; };
struct inet_diag_msg { uint8_t idiag_family, idiag_state, idiag_timer, idiag_retrans; struct inet_diag_sockid id; uint32_t idiag_expires, idiag_rqueue, idiag_wqueue, idiag_uid, idiag_inode; };
struct inet_diag_bc_op { unsigned char code, yes; unsigned short no; };
enum { UDIAG_SHOW_NAME = 1, UDIAG_SHOW_PEER = 4, UDIAG_SHOW_RQLEN = 0x10, UNIX_DIAG_NAME = 0, UNIX_DIAG_PEER = 2, UNIX_DIAG_RQLEN = 4 };
struct unix_diag_req { uint8_t sdiag_family, sdiag_protocol; uint16_t pad; uint32_t udiag_states, udiag_ino, udiag_show, udiag_cookie[2]; };
struct unix_diag_msg { uint8_t udiag_family, udiag_type, udiag_state, pad; uint32_t udiag_ino, udiag_cookie[2]; };
struct unix_diag_rqlen { uint32_t udiag_rqueue, udiag_wqueue; };

// Packet sockets and the programs of filters.
#ifndef SOL_PACKET
#define SOL_PACKET 263
#endif
enum { PACKET_ADD_MEMBERSHIP = 1, PACKET_RX_RING = 5, PACKET_STATISTICS = 6, PACKET_AUXDATA = 8, PACKET_VERSION = 10, PACKET_HDRLEN = 11, PACKET_RESERVE = 12 };
enum { PACKET_MR_PROMISC = 1, TPACKET_V2 = 1 };
struct sockaddr_ll { uint16_t sll_family, sll_protocol; int32_t sll_ifindex; uint16_t sll_hatype; uint8_t sll_pkttype, sll_halen, sll_addr[8]; };
struct packet_mreq { int mr_ifindex; uint16_t mr_type, mr_alen; uint8_t mr_address[8]; };
struct tpacket_stats { unsigned tp_packets, tp_drops; };
struct tpacket_req { unsigned tp_block_size, tp_block_nr, tp_frame_size, tp_frame_nr; };
struct sock_filter { uint16_t code; uint8_t jt, jf; uint32_t k; };
struct sock_fprog { unsigned short len; struct sock_filter *filter; };
enum { BPF_LD = 0, BPF_LDX = 1, BPF_ST = 2, BPF_ALU = 4, BPF_JMP = 5, BPF_RET = 6 };
enum { BPF_W = 0, BPF_H = 8, BPF_B = 0x10, BPF_IMM = 0, BPF_ABS = 0x20, BPF_MEM = 0x60, BPF_K = 0, BPF_A = 0x10 };
enum { BPF_DIV = 0x30, BPF_LSH = 0x60, BPF_JA = 0, BPF_JEQ = 0x10 };
#define BPF_STMT(code, k) { (unsigned short)(code), 0, 0, (uint32_t)(k) }
#define BPF_JUMP(code, k, jt, jf) { (unsigned short)(code), jt, jf, (uint32_t)(k) }
#define SKF_AD_OFF (-0x1000)
#define SKF_AD_PKTTYPE 4
#define SKF_AD_MAX 64
#endif
