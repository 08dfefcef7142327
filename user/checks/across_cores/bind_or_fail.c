// A socket is bound while another thread looks at it, binds it to another name, or changes the names of files: no name is seen that it does not get.
#include "together.h"
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ROUNDS 5000

static int one, other;
static int outcome[2];
static long wrong;

static int bind_to(int fd, const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    strcpy(address.sun_path, path);
    return bind(fd, (struct sockaddr *)&address, sizeof address) == 0 ? 0 : errno;
}

static int is_named(int fd)
{
    struct sockaddr_un address;
    socklen_t length = sizeof address;
    REQUIRE(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    return length > offsetof(struct sockaddr_un, sun_path);
}

static void make_socket(void)
{
    REQUIRE((one = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);
}

static void bind_to_taken(void)
{
    outcome[0] = bind_to(one, "taken");
}

static void bind_to_free(void)
{
    outcome[1] = bind_to(one, "free");
}

static void bind_to_another(void)
{
    outcome[0] = bind_to(one, "another");
}

// One name is all that it has, and it is seen by nobody else.
static void look_and_listen(void)
{
    wrong += is_named(one);
    wrong += listen(one, 1) == 0;
}

static void look_after_failure(void)
{
    wrong += outcome[0] != EADDRINUSE || is_named(one);
    close(one);
}

// A bind that fails is in no other's way.
static void look_at_one_of_two(void)
{
    wrong += outcome[0] == 0 || outcome[1] != 0 || !is_named(one);
    close(one);
    unlink("free");
}

static void look_at_both(void)
{
    int won = outcome[0] == 0;
    wrong += outcome[won] != EINVAL || outcome[!won] != 0;
    // As on Linux, what has lost leaves no file behind.
    wrong += unlink(won ? "another" : "free") != 0 || unlink(won ? "free" : "another") == 0;
    close(one);
}

static void make_two(void)
{
    REQUIRE((one = socket(AF_UNIX, SOCK_DGRAM, 0)) >= 0 && (other = socket(AF_UNIX, SOCK_DGRAM, 0)) >= 0);
    REQUIRE(bind_to(other, "old") == 0);
}

// As soon as there is such a name another socket's file takes its place.
static void replace(void)
{
    while (rename("new", "kept") != 0)
        ;
    REQUIRE(rename("old", "new") == 0);
}

static void bind_to_new(void)
{
    outcome[0] = bind_to(one, "new");
}

static void look_at_replaced(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "new" };
    char byte;
    wrong += outcome[0] != 0;
    REQUIRE(sendto(one, "x", 1, 0, (struct sockaddr *)&address, sizeof address) == 1);
    wrong += recv(other, &byte, 1, MSG_DONTWAIT) != 1;
    wrong += recv(one, &byte, 1, MSG_DONTWAIT) != -1;
    close(one);
    close(other);
    unlink("new");
    unlink("kept");
}

int main(void)
{
    REQUIRE(mknod("taken", S_IFREG | 0644, 0) == 0);
    together(ROUNDS, make_socket, bind_to_taken, look_and_listen, look_after_failure);
    CHECK("seen-and-not-bound", wrong);
    wrong = 0;
    together(ROUNDS, make_socket, bind_to_taken, bind_to_free, look_at_one_of_two);
    CHECK("refused-for-nothing", wrong);
    wrong = 0;
    together(ROUNDS, make_socket, bind_to_another, bind_to_free, look_at_both);
    CHECK("bound-twice", wrong);
    wrong = 0;
    together(ROUNDS, make_two, bind_to_new, replace, look_at_replaced);
    CHECK("reached-by-another's-name", wrong);
    return 0;
}
