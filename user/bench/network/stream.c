// Bytes over a connection, from one process to another, which reads as much as comes.
#include "network.h"
#include <sys/sendfile.h>

enum { KIB = 1024, MIB = 1024 * KIB, FILE_SIZE = MIB, WARM_UP = 4 * MIB, TOTAL = 32 * MIB };

static char buffer[64 * KIB] __attribute__((aligned(4096)));

// Reads so many bytes, and says that it has them.
static void take(int end, long bytes)
{
    while (bytes > 0) {
        long count = read(end, buffer, sizeof buffer);
        if (count <= 0)
            _exit(1);
        bytes -= count;
    }
    if (write(end, "", 1) != 1)
        _exit(1);
}

// Sends so many bytes in pieces, of a file if there is one, and waits until the other process has them.
static void give(int end, long bytes, long piece, int file)
{
    for (long sent = 0; sent < bytes; sent += piece) {
        off_t at = 0;
        long count = file < 0 ? write(end, buffer, piece) : sendfile(end, file, &at, piece);
        if (count != piece)
            fail("a piece was not sent");
    }
    char byte;
    if (read(end, &byte, 1) != 1)
        fail("the receiver is gone");
}

static long send_pieces(long piece, int file)
{
    int ends[2];
    tcp_pair(ends);
    pid_t pid = fork();
    must(pid, "fork");
    if (pid == 0) {
        close(ends[0]);
        take(ends[1], WARM_UP);
        take(ends[1], TOTAL);
        _exit(0);
    }
    close(ends[1]);
    // Windows grow meanwhile.
    give(ends[0], WARM_UP, piece, file);
    MARK_BEGIN();
    give(ends[0], TOTAL, piece, file);
    MARK_END();
    must(waitpid(pid, NULL, 0), "wait");
    close(ends[0]);
    return TOTAL / KIB;
}

static long send_1k(void) { return send_pieces(KIB, -1); }
static long send_16k(void) { return send_pieces(16 * KIB, -1); }
static long send_64k(void) { return send_pieces(64 * KIB, -1); }

static long send_file(void)
{
    int file = open(MEMORY "/file", O_RDWR | O_CREAT | O_TRUNC, 0644);
    must(file, "create a file");
    for (long at = 0; at < FILE_SIZE; at += sizeof buffer)
        if (write(file, buffer, sizeof buffer) != sizeof buffer)
            fail("write a file");
    long sent = send_pieces(FILE_SIZE, file);
    close(file);
    must(unlink(MEMORY "/file"), "unlink");
    return sent;
}

const struct row stream_rows[] = {
    { "tcp-1k", send_1k },
    { "tcp-16k", send_16k },
    { "tcp-64k", send_64k },
    { "tcp-sendfile", send_file },
    { 0 },
};
