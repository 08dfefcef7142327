// ICMP: echo requests by sockets of all messages, and who may have such a socket.
#include "../check.h"
#include "../inet.h"

static unsigned sum(const unsigned char *bytes, int len)
{
    unsigned total = 0;
    for (int i = 0; i + 1 < len; i += 2)
        total += bytes[i] << 8 | bytes[i + 1];
    if (len & 1)
        total += bytes[len - 1] << 8;
    while (total >> 16)
        total = (total & 0xffff) + (total >> 16);
    return total;
}

int main(void)
{
    unsigned char packet[256], request[16] = { 8, 0, 0, 0, 0x12, 0x34, 0, 1, 'e', 'b', 'b', '!', 1, 2, 3, 4 };
    int raw = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
    INET("raw", raw >= 0);
    INET("raw-0", socket(AF_INET, SOCK_RAW, 0));
    CHECK_CHILD("unprivileged", REQUIRE(setuid(1000) == 0); INET("unprivileged-raw", socket(AF_INET, SOCK_RAW, IPPROTO_ICMP)));
    INET("type", get_option(raw, SOL_SOCKET, SO_TYPE));
    INET("protocol", get_option(raw, SOL_SOCKET, SO_PROTOCOL));
    unsigned check = ~sum(request, sizeof request) & 0xffff;
    request[2] = check >> 8;
    request[3] = check;
    struct sockaddr_in to = v4("127.0.0.1", 0), from;
    INET("send", sendto(raw, request, sizeof request, 0, (struct sockaddr *)&to, sizeof to));
    for (int i = 0; i < 2; i++) {
        socklen_t len = sizeof from;
        ssize_t got = recvfrom(raw, packet, sizeof packet, 0, (struct sockaddr *)&from, &len);
        check_line("received: %d bytes from %s, version %#x, protocol %d, type %d, number %d, checksum %s, text %.4s\n", (int)got, inet_ntoa(from.sin_addr), packet[0],
                   packet[9], packet[20], packet[26] << 8 | packet[27], sum(packet + 20, got - 20) == 0xffff ? "right" : "wrong", packet + 28);
    }
    INET("no-more", recv(raw, packet, sizeof packet, MSG_DONTWAIT));
    INET("no-target", send(raw, request, sizeof request, 0));
    INET("connect", connect4(raw, "127.0.0.1", 0));
    INET("send-connected", send(raw, request, sizeof request, 0));
    INET("receive-connected", recv(raw, packet, sizeof packet, 0));
    int six = socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
    INET("raw6", six >= 0);
    struct sockaddr_in6 to6 = v6("::1", 0), from6;
    request[0] = 128;
    INET("send6", sendto(six, request, sizeof request, 0, (struct sockaddr *)&to6, sizeof to6));
    for (int i = 0; i < 2; i++) {
        socklen_t len = sizeof from6;
        ssize_t got = recvfrom(six, packet, sizeof packet, 0, (struct sockaddr *)&from6, &len);
        check_line("received6: %d bytes, type %d, text %.4s\n", (int)got, packet[0], packet + 8);
    }
    // Only answers.
    unsigned filter6[8], filter = ~(1u << 0);
    memset(filter6, 0xff, sizeof filter6);
    filter6[129 / 32] &= ~(1u << 129 % 32);
    INET("filter6", setsockopt(six, IPPROTO_ICMPV6, 1, filter6, sizeof filter6));
    INET("checksum6", set_option(six, SOL_RAW, 7, 2));
    INET("send6-filtered", sendto(six, request, sizeof request, 0, (struct sockaddr *)&to6, sizeof to6));
    REQUIRE(recv(six, packet, sizeof packet, 0) == 16);
    INET("type6", packet[0]);
    INET("no-more6", recv(six, packet, sizeof packet, MSG_DONTWAIT));
    raw = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
    INET("filter", setsockopt(raw, SOL_RAW, 1, &filter, sizeof filter));
    request[0] = 8;
    INET("send-filtered", sendto(raw, request, sizeof request, 0, (struct sockaddr *)&to, sizeof to));
    REQUIRE(recv(raw, packet, sizeof packet, 0) == 36);
    INET("type4", packet[20]);
    INET("no-more4", recv(raw, packet, sizeof packet, MSG_DONTWAIT));
    return 0;
}
