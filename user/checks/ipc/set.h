// A set of semaphores.
#pragma once
#include "own.h"
#include <sys/ipc.h>
#include <sys/sem.h>

union semun {
    int val;
    struct semid_ds *buf;
    unsigned short *array;
    struct seminfo *info;
};

static int set;

static int op(int number, int add, int flags)
{
    struct sembuf one = { number, add, flags };
    return semop(set, &one, 1);
}
