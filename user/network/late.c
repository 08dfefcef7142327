// Ends its direction of a connection some seconds after that was made, and begins to read some seconds later: late ADDRESS PORT SECONDS SECONDS. Says how much it has read, and what came then.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[2])) };
    inet_pton(AF_INET, argv[1], &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
        perror("connect");
        return 1;
    }
    sleep(atoi(argv[3]));
    shutdown(fd, SHUT_WR);
    sleep(atoi(argv[4]));
    static char bytes[65536];
    long all = 0;
    ssize_t count;
    while ((count = read(fd, bytes, sizeof bytes)) > 0)
        all += count;
    printf("%ld bytes, then %s\n", all, count == 0 ? "the end" : strerror(errno));
}
