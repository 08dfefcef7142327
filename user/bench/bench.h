// What the measuring programs share: a counter, system calls without the C library between, and being process 1.
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline uint64_t ticks(void)
{
    uint32_t low, high;
    __asm__ volatile("lfence; rdtsc" : "=a"(low), "=d"(high)::"memory");
    return (uint64_t)high << 32 | low;
}

// System calls without the C library between: they give -errno.
static inline long call3(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}

static inline long call4(long number, long a, long b, long c, long d)
{
    long result;
    register long fourth __asm__("r10") = d;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
    return result;
}

static inline long call6(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = e;
    register long sixth __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return result;
}

static inline void fail(const char *what)
{
    printf("bench: %s: %s\n", what, strerror(errno));
    fflush(stdout);
    if (getpid() == 1)
        reboot(RB_POWER_OFF);
    exit(1);
}

static inline void must(long result, const char *what)
{
    if (result < 0) {
        if (result > -4096 && result != -1)
            errno = (int)-result;
        fail(what);
    }
}

// What a system's own first process would have done.
static inline void become_init(void)
{
    mkdir("/dev", 0755);
    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
    mkdir("/proc", 0755);
    mount("proc", "/proc", "proc", 0, NULL);
    int console = open("/dev/console", O_RDWR);
    if (console >= 0)
        for (int fd = 0; fd < 3; fd++)
            dup2(console, fd);
}

// Process 1 goes into a cgroup with all controllers that a kernel has of these.
static inline void enter_group(void)
{
    static const char *const wanted[] = { "+memory", "+pids", "+cpu", "+reclaim" };
    mkdir("/cgroup", 0755);
    must(mount("cgroup2", "/cgroup", "cgroup2", 0, NULL), "mount of cgroup2");
    int control = open("/cgroup/cgroup.subtree_control", O_WRONLY);
    must(control, "cgroup.subtree_control");
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (write(control, wanted[i], strlen(wanted[i])) < 0)
            printf("bench: no controller %s\n", wanted[i] + 1);
    close(control);
    must(mkdir("/cgroup/bench", 0755), "mkdir of a group");
    int members = open("/cgroup/bench/cgroup.procs", O_WRONLY);
    must(members, "cgroup.procs");
    must(write(members, "0", 1), "cgroup.procs");
    close(members);
}

// Writes an ELF program of one page that ends at once with status 0.
static inline void write_program(const char *path)
{
    static const unsigned char code[] = { 0x31, 0xff, 0xb8, 0xe7, 0, 0, 0, 0x0f, 0x05 };
    struct {
        unsigned char identity[16];
        uint16_t type, machine;
        uint32_t version;
        uint64_t entry, headers, sections;
        uint32_t flags;
        uint16_t size, header_size, header_count, section_size, section_count, names;
        uint32_t load, load_flags;
        uint64_t offset, address, physical, file_size, memory_size, alignment;
        unsigned char code[16];
    } image = {
        .identity = { 0x7f, 'E', 'L', 'F', 2, 1, 1 },
        .type = 2,
        .machine = 62,
        .version = 1,
        .entry = 0x400000 + 120,
        .headers = 64,
        .size = 64,
        .header_size = 56,
        .header_count = 1,
        .load = 1,
        .load_flags = 5,
        .address = 0x400000,
        .physical = 0x400000,
        .file_size = 120 + sizeof code,
        .memory_size = 120 + sizeof code,
        .alignment = 4096,
    };
    memcpy(image.code, code, sizeof code);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    must(fd, "create the program");
    if (write(fd, &image, sizeof image) != sizeof image)
        fail("write the program");
    close(fd);
}

static char *choice[64];
static int choices;

// Which rows are measured: those that the arguments name, or for process 1, which gets the kernel's arguments, the file /rows; else all.
static inline void choose(int argc, char **argv)
{
    static char names[4096];
    if (getpid() != 1) {
        for (int i = 1; i < argc && choices < 64; i++)
            choice[choices++] = argv[i];
        return;
    }
    int fd = open("/rows", O_RDONLY);
    if (fd < 0)
        return;
    if (read(fd, names, sizeof names - 1) < 0)
        fail("/rows");
    for (char *name = strtok(names, "\n"); name && choices < 64; name = strtok(NULL, "\n"))
        choice[choices++] = name;
    close(fd);
}

static inline int chosen(const char *name)
{
    for (int i = 0; i < choices; i++)
        if (strcmp(choice[i], name) == 0)
            return 1;
    return choices == 0;
}

// Ends the program, and the machine if it is process 1.
static inline void done(void)
{
    printf("bench: done\n");
    fflush(stdout);
    if (getpid() == 1) {
        sync();
        reboot(RB_POWER_OFF);
    }
    exit(0);
}
