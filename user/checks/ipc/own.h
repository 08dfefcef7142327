// Objects of System V IPC and their limits that are nobody else's.
#pragma once
#include "../check.h"
#include <sched.h>

// What a check leaves behind or changes is not the host's then. Where there are no such namespaces, or nobody may make one, it is the machine's.
static void own_objects(void)
{
    unshare(CLONE_NEWIPC);
}
