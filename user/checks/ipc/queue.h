// A queue of messages, and what is sent.
#pragma once
#include "own.h"
#include <sys/ipc.h>
#include <sys/msg.h>

#ifndef MSG_COPY
#define MSG_COPY 040000
#endif

struct message {
    long kind;
    char text[9000];
};

static int queue;
