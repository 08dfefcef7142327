// Many connections with another machine: crowd ADDRESS PORT COUNT. Says `ready` when all are there and one byte has come over each, and waits for its end.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[2])) };
    inet_pton(AF_INET, argv[1], &to.sin_addr);
    int count = atoi(argv[3]);
    struct rlimit limit = { count + 16, count + 16 };
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int at = 0; at < count; at++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        char byte;
        if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0 || read(fd, &byte, 1) != 1) {
            perror("connect");
            return 1;
        }
    }
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}
