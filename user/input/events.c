/*
 * What an input device is, and what it reports.
 *
 *   events describe DEVICE       prints what ioctl(2) tells of it
 *   events read DEVICE REPORTS   prints that it is ready, then so many reports
 *   events repeat DEVICE         prints that it is ready, then how a key repeats that is held down
 *   events write DEVICE          sets and asks for lights
 *   events gone DEVICE           prints that it is ready, then what happens when it is gone
 *
 * It runs on Linux and on Ebb, which must say the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/input.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static int device;

static void say(const char *name, long result)
{
	if (result < 0)
		printf("%s: %s\n", name, strerror(errno));
	else
		printf("%s: %ld\n", name, result);
}

static void bits(const char *name, unsigned long request)
{
	unsigned char bytes[128] = { 0 };
	long len = ioctl(device, request, bytes);
	say(name, len);
	for (long at = 0; at < len * 8; at++)
		if (bytes[at / 8] >> (at % 8) & 1)
			printf(" %lx", at);
	printf("\n");
}

static void describe(void)
{
	int version = 0;
	struct input_id id;
	char text[256] = "";
	unsigned int repeat[2] = { 0, 0 };
	say("version", ioctl(device, EVIOCGVERSION, &version));
	say("id", ioctl(device, EVIOCGID, &id));
	printf("%x: %x %x %x %x\n", version, id.bustype, id.vendor, id.product, id.version);
	say("name", ioctl(device, EVIOCGNAME(sizeof text), text));
	printf("%s\n", text);
	say("name in 5 bytes", ioctl(device, EVIOCGNAME(5), text));
	printf("%.5s\n", text);
	say("phys", ioctl(device, EVIOCGPHYS(sizeof text), text));
	printf("%s\n", strrchr(text, '-'));
	say("repeat", ioctl(device, EVIOCGREP, repeat));
	printf("%u %u\n", repeat[0], repeat[1]);
	bits("properties", EVIOCGPROP(64));
	bits("types", EVIOCGBIT(0, 64));
	bits("keys", EVIOCGBIT(EV_KEY, 96));
	bits("keys in 16 bytes", EVIOCGBIT(EV_KEY, 16));
	bits("relative axes", EVIOCGBIT(EV_REL, 64));
	bits("absolute axes", EVIOCGBIT(EV_ABS, 64));
	bits("others", EVIOCGBIT(EV_MSC, 64));
	bits("lights", EVIOCGBIT(EV_LED, 64));
	bits("sounds", EVIOCGBIT(EV_SND, 64));
	bits("switches", EVIOCGBIT(EV_SW, 64));
	bits("forces", EVIOCGBIT(EV_FF, 64));
	bits("repetitions", EVIOCGBIT(EV_REP, 64));
	bits("a type that there is not", EVIOCGBIT(0x1e, 64));
	bits("keys that are down", EVIOCGKEY(96));
	bits("lights that are on", EVIOCGLED(64));
	bits("sounds that are heard", EVIOCGSND(64));
	bits("switches that are on", EVIOCGSW(64));
	for (int axis = 0; axis < 9; axis += 4) {
		struct input_absinfo info = { 9, 9, 9, 9, 9, 9 };
		say("axis", ioctl(device, EVIOCGABS(axis), &info));
		printf("%d..%d fuzz %d flat %d resolution %d\n", info.minimum, info.maximum, info.fuzz, info.flat,
		       info.resolution);
	}
	say("a request that there is not", ioctl(device, _IOR('E', 0xe0, int), text));
	say("one of another kind", ioctl(device, _IOR('T', 0xe0, int), text));
	say("effects", ioctl(device, EVIOCGEFFECTS, repeat));
	int clock = 3;
	say("a clock that it does not have", ioctl(device, EVIOCSCLOCKID, &clock));
	clock = CLOCK_MONOTONIC;
	say("a clock", ioctl(device, EVIOCSCLOCKID, &clock));
	int other = open("/proc/self/fd/3", O_RDWR);
	say("grab", ioctl(device, EVIOCGRAB, (void *)1));
	say("grab again", ioctl(device, EVIOCGRAB, (void *)1));
	say("another's grab", ioctl(other, EVIOCGRAB, (void *)1));
	say("another lets go", ioctl(other, EVIOCGRAB, (void *)0));
	say("let go", ioctl(device, EVIOCGRAB, (void *)0));
	say("revoke not", ioctl(other, EVIOCREVOKE, (void *)1));
	say("revoke", ioctl(other, EVIOCREVOKE, (void *)0));
	say("read what is revoked", read(other, text, sizeof text));
	say("ask what is revoked", ioctl(other, EVIOCGVERSION, &version));
	struct pollfd one = { .fd = other, .events = POLLIN };
	poll(&one, 1, 0);
	printf("poll: %x\n", one.revents);
	close(other);
	unsigned char mask[96] = { 0 };
	struct input_mask wanted = { EV_KEY, sizeof mask, (unsigned long)mask };
	say("mask", ioctl(device, EVIOCGMASK, &wanted));
	printf("%x %x %x\n", mask[0], mask[50], mask[95]);
	memset(mask, 0xf0, sizeof mask);
	say("another mask", ioctl(device, EVIOCSMASK, &wanted));
	memset(mask, 0, sizeof mask);
	say("mask", ioctl(device, EVIOCGMASK, &wanted));
	printf("%x %x %x\n", mask[0], mask[50], mask[95]);
	wanted.type = 0x1e;
	memset(mask, 0xff, sizeof mask);
	say("mask of a type that there is not", ioctl(device, EVIOCGMASK, &wanted));
	printf("%x %x\n", mask[0], mask[95]);
	say("set it", ioctl(device, EVIOCSMASK, &wanted));
	say("read a little", read(device, text, 5));
	say("read nothing", read(device, text, 0));
	fcntl(device, F_SETFL, O_NONBLOCK);
	say("read", read(device, text, sizeof text));
	one.fd = device;
	one.events = POLLIN | POLLOUT | POLLPRI;
	poll(&one, 1, 0);
	printf("poll: %x\n", one.revents);
	say("write a little", write(device, text, 5));
	say("write nothing", write(device, text, 0));
	say("seek", lseek(device, 0, SEEK_SET));
}

static void ready(void)
{
	printf("ready\n");
	fflush(stdout);
}

static void show(struct input_event *event)
{
	printf("%x %x %d\n", event->type, event->code, event->value);
}

static void reports(int count)
{
	struct input_event events[64];
	long last = 0;
	while (count > 0) {
		long len = read(device, events, sizeof events);
		if (len <= 0) {
			say("read", len);
			return;
		}
		for (long at = 0; at < len / (long)sizeof events[0] && count > 0; at++) {
			long time = events[at].time.tv_sec * 1000000L + events[at].time.tv_usec;
			if (time < last)
				printf("earlier than before\n");
			last = time;
			show(&events[at]);
			count -= events[at].type == EV_SYN && events[at].code == SYN_REPORT;
		}
	}
	long ago = time(NULL) - last / 1000000L;
	printf("%s\n", ago >= -1 && ago < 600 ? "just now" : "at another time");
}

static void repetitions(void)
{
	struct input_event events[64];
	int ends = 0, held = 0;
	while (held < 3) {
		long len = read(device, events, sizeof events);
		for (long at = 0; at < len / (long)sizeof events[0]; at++) {
			if (events[at].type == EV_KEY && events[at].value == 2)
				held++;
			else if (events[at].type == EV_SYN)
				ends += events[at].value;
		}
	}
	printf("held, %s\n", ends >= held ? "and told apart" : "and not told apart");
}

static void lights(void)
{
	struct input_event events[3] = { { .type = EV_LED, .code = LED_CAPSL, .value = 1 },
					 { .type = EV_LED, .code = LED_MISC, .value = 1 },
					 { .type = EV_SYN, .code = SYN_REPORT } };
	say("write", write(device, events, sizeof events));
	bits("lights that are on", EVIOCGLED(64));
	say("write again", write(device, events, sizeof events));
	events[0].value = 0;
	say("write", write(device, events, sizeof events));
	bits("lights that are on", EVIOCGLED(64));
	unsigned int repeat[2] = { 400, 50 };
	say("repeat otherwise", ioctl(device, EVIOCSREP, repeat));
	repeat[0] = repeat[1] = 0;
	say("repeat", ioctl(device, EVIOCGREP, repeat));
	printf("%u %u\n", repeat[0], repeat[1]);
	struct input_event key[2] = { { .type = EV_KEY, .code = KEY_B, .value = 1 },
				      { .type = EV_SYN, .code = SYN_REPORT } };
	say("write a key", write(device, key, sizeof key));
	bits("keys that are down", EVIOCGKEY(96));
	key[0].value = 0;
	say("write a key", write(device, key, sizeof key));
	fcntl(device, F_SETFL, O_NONBLOCK);
	struct input_event read_events[64];
	long len = read(device, read_events, sizeof read_events);
	for (long at = 0; at < len / (long)sizeof read_events[0]; at++)
		show(&read_events[at]);
	for (int round = 0; round < 200; round++) {
		events[0].value = !events[0].value;
		write(device, events, sizeof events);
	}
	len = read(device, read_events, sizeof read_events);
	show(&read_events[0]);
	printf("%s\n", read_events[0].code == SYN_DROPPED && len > 0 ? "some were lost" : "none was lost");
}

static void gone(void)
{
	struct pollfd one = { .fd = device, .events = POLLIN };
	int version;
	char text[64];
	ready();
	do {
		one.revents = 0;
		poll(&one, 1, -1);
		if (one.revents & POLLIN && !(one.revents & POLLHUP))
			read(device, text, sizeof text);
	} while (!(one.revents & POLLHUP));
	printf("poll: %x\n", one.revents);
	say("read", read(device, text, sizeof text));
	say("write", write(device, text, 24));
	say("version", ioctl(device, EVIOCGVERSION, &version));
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	device = open(argv[2], O_RDWR);
	if (device < 0) {
		perror(argv[2]);
		return 1;
	}
	if (!strcmp(argv[1], "describe")) {
		describe();
	} else if (!strcmp(argv[1], "read") && argc == 4) {
		ready();
		reports(atoi(argv[3]));
	} else if (!strcmp(argv[1], "repeat")) {
		ready();
		repetitions();
	} else if (!strcmp(argv[1], "write")) {
		lights();
	} else if (!strcmp(argv[1], "gone")) {
		gone();
	} else {
		return 2;
	}
	return 0;
}
