// What is counted of datagrams and connections: /proc/net/snmp, snmp6 and netstat.
#include "../check.h"
#include "../inet.h"

// A counter of a file that has a line with names and one with numbers for each protocol.
static long counted(const char *path, const char *protocol, const char *name)
{
    static char names[8192], numbers[8192];
    FILE *file = fopen(path, "r");
    REQUIRE(file);
    long value = -1;
    size_t len = strlen(protocol);
    while (value < 0 && fgets(names, sizeof names, file) && fgets(numbers, sizeof numbers, file)) {
        if (strncmp(names, protocol, len) || names[len] != ':')
            continue;
        REQUIRE(!strncmp(numbers, protocol, len) && numbers[len] == ':');
        char *end_of_names, *end_of_numbers, *number = strtok_r(numbers, " \n", &end_of_numbers);
        for (char *one = strtok_r(names, " \n", &end_of_names); one && number; one = strtok_r(NULL, " \n", &end_of_names), number = strtok_r(NULL, " \n", &end_of_numbers))
            if (!strcmp(one, name))
                value = atol(number);
    }
    fclose(file);
    return value;
}

// The same of snmp6, where each has a line.
static long counted6(const char *name)
{
    char line[128], own[64];
    long value, found = -1;
    FILE *file = fopen("/proc/net/snmp6", "r");
    REQUIRE(file);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "%63s %ld", own, &value) == 2 && !strcmp(own, name))
            found = value;
    fclose(file);
    return found;
}

#define MORE(name, before, now, count) CHECK_TRUE(name, (before) >= 0 && (now) - (before) >= (count))

int main(void)
{
    char buffer[16];
    for (int six = 0; six < 2; six++) {
        const char *ip = six ? "::1" : "127.0.0.1";
#define UDP(name) (six ? counted6("Udp6" name) : counted("/proc/net/snmp", "Udp", name))
        long received = UDP("InDatagrams"), sent = UDP("OutDatagrams"), nobody = UDP("NoPorts"), errors = UDP("InErrors"), full = UDP("RcvbufErrors");
        int to = socket(six ? AF_INET6 : AF_INET, SOCK_DGRAM, 0), from = socket(six ? AF_INET6 : AF_INET, SOCK_DGRAM, 0);
        REQUIRE((six ? bind6(to, ip, 0) : bind4(to, ip, 0)) == 0);
        int port = port_of(to);
        REQUIRE((six ? connect6(from, ip, port) : connect4(from, ip, port)) == 0);
        for (int i = 0; i < 3; i++)
            REQUIRE(send(from, "three", 5, 0) == 5 && recv(to, buffer, sizeof buffer, 0) == 5);
        MORE(six ? "received6" : "received", received, UDP("InDatagrams"), 3);
        MORE(six ? "sent6" : "sent", sent, UDP("OutDatagrams"), 3);
        set_option(to, SOL_SOCKET, SO_RCVBUF, 1);
        for (int i = 0; i < 500; i++)
            send(from, "one too many", 12, 0);
        MORE(six ? "errors6" : "errors", errors, UDP("InErrors"), 100);
        MORE(six ? "full6" : "full", full, UDP("RcvbufErrors"), 100);
        close(to);
        REQUIRE(send(from, "nobody", 6, 0) == 6);
        MORE(six ? "nobody6" : "nobody", nobody, UDP("NoPorts"), 1);
        close(from);
    }
    // Connections that end before their time, and a listener that is full.
#define EXT(name) counted("/proc/net/netstat", "TcpExt", name)
    long unread = EXT("TCPAbortOnClose"), at_once = EXT("TCPAbortOnData"), overflows = EXT("ListenOverflows"), drops = EXT("ListenDrops");
    int ends[2];
    connected4(ends);
    REQUIRE(send(ends[0], "unread", 6, 0) == 6);
    show_poll("unread", ends[1], POLLIN);
    close(ends[1]), close(ends[0]);
    MORE("reset-unread", unread, EXT("TCPAbortOnClose"), 1);
    connected4(ends);
    struct linger no = { 1, 0 };
    REQUIRE(setsockopt(ends[0], SOL_SOCKET, SO_LINGER, &no, sizeof no) == 0);
    close(ends[0]), close(ends[1]);
    MORE("reset-at-once", at_once, EXT("TCPAbortOnData"), 1);
    int listener = listener4(0), clients[4];
    for (int i = 0; i < 4; i++) {
        clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect4(clients[i], "127.0.0.1", port_of(listener));
    }
    check_sleep_ms(20);
    MORE("full-listener", overflows, EXT("ListenOverflows"), 1);
    MORE("full-listener-drops", drops, EXT("ListenDrops"), 1);
    CHECK_TRUE("cookies", EXT("SyncookiesSent") >= 0 && EXT("SyncookiesRecv") >= 0 && EXT("SyncookiesFailed") >= 0);
    CHECK_TRUE("bytes", counted("/proc/net/netstat", "IpExt", "InOctets") >= 0 && counted("/proc/net/netstat", "IpExt", "OutOctets") >= 0);
    CHECK_TRUE("bytes6", counted6("Ip6InOctets") >= 0 && counted6("Ip6OutOctets") >= 0 && counted6("Ip6InReceives") >= 0 && counted6("Ip6OutRequests") >= 0);
    return 0;
}
