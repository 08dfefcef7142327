// Messages from one socket to another, a batch at a time.
#include "network.h"

enum { BATCH = 32, BATCHES = 500, MOST = 1400 };

static struct mmsghdr sent[BATCH], received[BATCH];

static long send_batches(long size)
{
    static char out[MOST], in[BATCH][MOST];
    struct iovec from = { out, size }, to[BATCH];
    int ends[2];
    udp_pair(ends);
    for (int i = 0; i < BATCH; i++) {
        to[i] = (struct iovec){ in[i], MOST };
        sent[i].msg_hdr = (struct msghdr){ .msg_iov = &from, .msg_iovlen = 1 };
        received[i].msg_hdr = (struct msghdr){ .msg_iov = &to[i], .msg_iovlen = 1 };
    }
    for (int batch = -1; batch < BATCHES; batch++) {
        if (batch == 0)
            MARK_BEGIN();
        if (call4(SYS_sendmmsg, ends[0], (long)sent, BATCH, 0) != BATCH)
            fail("sendmmsg");
        if (call6(SYS_recvmmsg, ends[1], (long)received, BATCH, 0, 0, 0) != BATCH)
            fail("recvmmsg");
    }
    MARK_END();
    for (int i = 0; i < BATCH; i++)
        if (received[i].msg_len != size)
            fail("a message has another length");
    close(ends[0]);
    close(ends[1]);
    return BATCH * BATCHES;
}

static long send_64(void) { return send_batches(64); }
static long send_1400(void) { return send_batches(1400); }

const struct row datagram_rows[] = {
    { "udp-64", send_64 },
    { "udp-1400", send_1400 },
    { 0 },
};
