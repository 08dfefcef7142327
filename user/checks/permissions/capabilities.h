// What <linux/capability.h> and <linux/securebits.h> have, which the C library does not bring along.
#ifndef EBB_CAPABILITIES_H
#define EBB_CAPABILITIES_H
#include <stdint.h>

#define CAP_CHOWN 0
#define CAP_DAC_OVERRIDE 1
#define CAP_DAC_READ_SEARCH 2
#define CAP_FOWNER 3
#define CAP_FSETID 4
#define CAP_KILL 5
#define CAP_SETUID 7
#define CAP_SETPCAP 8
#define CAP_SYS_CHROOT 18
#define CAP_SYS_NICE 23

#define SECBIT_NOROOT (1 << 0)
#define SECBIT_NOROOT_LOCKED (1 << 1)
#define SECBIT_NO_SETUID_FIXUP (1 << 2)
#define SECBIT_KEEP_CAPS_LOCKED (1 << 5)
#define SECBIT_NO_CAP_AMBIENT_RAISE (1 << 6)

#define _LINUX_CAPABILITY_VERSION_1 0x19980330
#define _LINUX_CAPABILITY_VERSION_2 0x20071026
#define _LINUX_CAPABILITY_VERSION_3 0x20080522

struct __user_cap_header_struct {
    uint32_t version;
    int pid;
};

struct __user_cap_data_struct {
    uint32_t effective, permitted, inheritable;
};

#define BIT(capability) (1ULL << (capability))

// The sets that capget(2) and capset(2) know.
typedef struct {
    uint64_t effective, permitted, inheritable;
} Sets;

static inline int get(Sets *sets)
{
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data) != 0)
        return -1;
    sets->effective = data[0].effective | (uint64_t)data[1].effective << 32;
    sets->permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
    sets->inheritable = data[0].inheritable | (uint64_t)data[1].inheritable << 32;
    return 0;
}

static inline int set(uint64_t effective, uint64_t permitted, uint64_t inheritable)
{
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct data[2] = {
        { (uint32_t)effective, (uint32_t)permitted, (uint32_t)inheritable },
        { (uint32_t)(effective >> 32), (uint32_t)(permitted >> 32), (uint32_t)(inheritable >> 32) },
    };
    return (int)syscall(SYS_capset, &header, data);
}

// Keeps only these of what is permitted.
static inline void keep(uint64_t capabilities)
{
    Sets sets;
    REQUIRE(get(&sets) == 0);
    REQUIRE(set(sets.permitted & capabilities, sets.permitted & capabilities, 0) == 0);
}

// Capabilities about files, and one that is not: machines differ in what root has beyond these.
#define SHOWN (BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_FOWNER) | BIT(CAP_FSETID) | BIT(CAP_KILL))
#endif
