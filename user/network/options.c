/*
 * What options do for a connection with another machine, and what is told of one: options ADDRESS PORT, where somebody accepts, says one byte, and reads nothing.
 * It runs on Linux and on Ebb, which must say the same.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct sockaddr_in to;

static void say(const char *fact, int holds)
{
	printf("%s: %s\n", fact, holds ? "yes" : "no");
}

static void wait_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };
	nanosleep(&time, NULL);
}

static int get(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof value;
	getsockopt(fd, level, name, &value, &len);
	return value;
}

static int set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof value);
}

static int connected(int maxseg)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char byte;
	if (maxseg)
		set(fd, IPPROTO_TCP, TCP_MAXSEG, maxseg);
	if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0 || read(fd, &byte, 1) != 1) {
		perror("connect");
		exit(1);
	}
	return fd;
}

static struct tcp_info info(int fd)
{
	struct tcp_info told;
	socklen_t len = sizeof told;
	memset(&told, 0, sizeof told);
	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &told, &len);
	return told;
}

static int queued(int fd, int request)
{
	int bytes = -1;
	ioctl(fd, request, &bytes);
	return bytes;
}

/* Waits up to a second for what was sent to be acknowledged. */
static int all_is_acknowledged(int fd)
{
	for (int at = 0; at < 100 && queued(fd, SIOCOUTQ) != 0; at++)
		wait_ms(10);
	return queued(fd, SIOCOUTQ) == 0;
}

static long fill(int fd)
{
	static char bytes[4096];
	long all = 0, count;
	while ((count = send(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
		all += count;
	return all;
}

/* Fills until the other side has taken nothing for a second; one that is slow may go on for long. */
static void fill_to_the_brim(int fd)
{
	for (int quiet = 0; quiet < 10; quiet++) {
		if (fill(fd) > 0)
			quiet = 0;
		wait_ms(100);
	}
}

int main(int argc, char **argv)
{
	char bytes[2000] = { 0 };
	if (argc < 3)
		return 2;
	to.sin_family = AF_INET;
	to.sin_port = htons(atoi(argv[2]));
	inet_pton(AF_INET, argv[1], &to.sin_addr);

	int fd = connected(0);
	say("bytes are sent", send(fd, bytes, 500, 0) == 500);
	say("all are acknowledged", all_is_acknowledged(fd));
	struct tcp_info told = info(fd);
	say("it is established", told.tcpi_state == 1);
	say("a round trip was measured", told.tcpi_rtt > 0 && told.tcpi_rtt < 10000000 && told.tcpi_rttvar > 0);
	say("the smallest one too", told.tcpi_min_rtt > 0 && told.tcpi_min_rtt < 10000000);
	say("bytes that were acknowledged", told.tcpi_bytes_acked == 500 || told.tcpi_bytes_acked == 501);
	say("bytes that have come", told.tcpi_bytes_received == 1);
	say("segments with data went", told.tcpi_data_segs_out >= 1 && told.tcpi_segs_out >= 2);
	say("and came", told.tcpi_data_segs_in >= 1 && told.tcpi_segs_in >= 2);
	say("nothing was sent again", told.tcpi_total_retrans == 0 && told.tcpi_lost == 0 && told.tcpi_unacked == 0);
	say("a window", told.tcpi_snd_cwnd >= 2 && told.tcpi_snd_cwnd < 100000);
	say("the segments' size is that of TCP_MAXSEG", (int)told.tcpi_snd_mss == get(fd, IPPROTO_TCP, TCP_MAXSEG));
	say("the path carries them", told.tcpi_pmtu > told.tcpi_snd_mss + 20);
	say("a time until something is sent again", told.tcpi_rto >= 200000 && told.tcpi_rto < 120000000);
	say("nothing waits", queued(fd, SIOCOUTQ) == 0 && queued(fd, SIOCOUTQNSD) == 0);

	say("a cork", set(fd, IPPROTO_TCP, TCP_CORK, 1) == 0);
	say("a few bytes behind it", send(fd, bytes, 100, 0) == 100);
	say("are not sent", queued(fd, SIOCOUTQ) == 100 && queued(fd, SIOCOUTQNSD) == 100);
	say("without it", set(fd, IPPROTO_TCP, TCP_CORK, 0) == 0);
	say("they are at once", queued(fd, SIOCOUTQNSD) == 0 && all_is_acknowledged(fd));
	say("behind a cork again", set(fd, IPPROTO_TCP, TCP_CORK, 1) == 0 && send(fd, bytes, 100, 0) == 100);
	say("they go after some time", all_is_acknowledged(fd));
	set(fd, IPPROTO_TCP, TCP_CORK, 0);

	say("acknowledgments at once", set(fd, IPPROTO_TCP, TCP_QUICKACK, 1) == 0);
	say("no delay", set(fd, IPPROTO_TCP, TCP_NODELAY, 1) == 0 && get(fd, IPPROTO_TCP, TCP_NODELAY) == 1);
	say("a class and a number of hops", set(fd, IPPROTO_IP, IP_TOS, 0x10) == 0 && set(fd, IPPROTO_IP, IP_TTL, 33) == 0);
	say("bytes still arrive", send(fd, bytes, 700, 0) == 700 && all_is_acknowledged(fd));
	close(fd);

	fd = connected(600);
	told = info(fd);
	say("a smaller segment", told.tcpi_snd_mss <= 600 && told.tcpi_snd_mss >= 500);
	say("many of them", send(fd, bytes, 2000, 0) == 2000 && all_is_acknowledged(fd) && info(fd).tcpi_data_segs_out >= 4);
	close(fd);

	fd = connected(0);
	say("little may wait to be sent", set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 8192) == 0);
	fill_to_the_brim(fd);
	struct pollfd wanted = { fd, POLLOUT, 0 };
	int waits = queued(fd, SIOCOUTQNSD);
	say("so little does", waits >= 0 && waits < 8192 + 70000);
	say("and there is no room", poll(&wanted, 1, 0) == 0);
	say("without the option", set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 0) == 0);
	say("more may", fill(fd) > 0);
	close(fd);
	return 0;
}
