// Broken programs: this program's own ELF file, changed at random, is executed over and over; the kernel must refuse it
// or kill it, and go on.
//
//     programs SEED COUNT
//
// Like the fuzzer of system calls only for guests: process 1 or a child of it. The changes hit the ELF header, the program
// headers (types, offsets, addresses, sizes, alignments), the interpreter's name, single bytes anywhere, and the length
// of the file. A changed program that still runs ends at once. Prints `programs: N executed, R refused, seed S, done`.
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t state;

static uint64_t next(void)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1dull;
}

static unsigned below(unsigned limit)
{
    return (unsigned)((next() >> 32) * limit >> 32);
}

static uint64_t odd_number(uint64_t now)
{
    static const uint64_t numbers[] = {
        0, 1, 2, 3, 7, 8, 63, 64, 4095, 4096, 4097, 0x1000000, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
        0x7fffffffefff, 0x7ffffffff000, 0x800000000000, 0x7fffffffffffffff, 0x8000000000000000, (uint64_t)-4096, (uint64_t)-1,
        0xffffffff80000000, 0xffff800000000000,
    };
    switch (below(4)) {
    case 0:
        return now + below(3) - 1;
    case 1:
        return now ^ 1ull << below(64);
    case 2:
        return next();
    default:
        return numbers[below(sizeof numbers / sizeof numbers[0])];
    }
}

// Changes a field of 1, 2, 4 or 8 bytes.
static void change(unsigned char *field, unsigned size)
{
    uint64_t value = 0;
    memcpy(&value, field, size);
    value = odd_number(value);
    memcpy(field, &value, size);
}

static size_t mutate(unsigned char *file, size_t length)
{
    Elf64_Ehdr *header = (Elf64_Ehdr *)file;
    Elf64_Phdr *segments = (Elf64_Phdr *)(file + header->e_phoff);
    unsigned count = header->e_phnum;
    for (unsigned left = 1 + below(4); left > 0; left--)
        switch (below(8)) {
        case 0:
            change((unsigned char *)header + below(8) * 8, 8);
            break;
        case 1:
            change((unsigned char *)&header->e_flags + below(7) * 2, 2);
            break;
        case 2:
        case 3:
        case 4: {
            Elf64_Phdr *segment = &segments[below(count)];
            if (below(4) == 0)
                segment->p_type = below(9);
            else if (below(4) == 0)
                segment->p_flags = below(16);
            else
                change((unsigned char *)segment + 8 + below(6) * 8, 8);
            break;
        }
        case 5:
            // An interpreter that is somewhere in the file.
            segments[below(count)] = (Elf64_Phdr){ .p_type = PT_INTERP, .p_offset = below(length), .p_filesz = below(64), .p_flags = 4 };
            break;
        case 6:
            file[below(length)] = (unsigned char)next();
            break;
        default:
            length = below(4) == 0 ? below(256) : below(length) + 1;
        }
    return length;
}

int main(int argc, char **argv)
{
    int first = getpid() == 1;
    if (argc == 1 && !first)
        // A copy that still runs.
        return 0;
    if (first) {
        mkdir("/dev", 0755);
        mkdir("/proc", 0555);
        mkdir("/tmp", 01777);
        mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
        mount("proc", "/proc", "proc", 0, NULL);
        int console = open("/dev/console", O_RDWR);
        for (int fd = 0; console >= 0 && fd < 3; fd++)
            dup2(console, fd);
    } else if (getppid() != 1) {
        fprintf(stderr, "programs: to be run in a guest, by process 1\n");
        return 2;
    }
    uint64_t seed = argc > 2 ? strtoull(argv[argc - 2], NULL, 0) : 1;
    unsigned long count = argc > 2 ? strtoul(argv[argc - 1], NULL, 0) : 1000, refused = 0;
    state = seed * 0x9e3779b97f4a7c15ull | 1;
    static unsigned char original[1 << 20], file[1 << 20];
    int self = open("/proc/self/exe", O_RDONLY);
    ssize_t length = self >= 0 ? read(self, original, sizeof original) : -1;
    if (length < (ssize_t)sizeof(Elf64_Ehdr)) {
        fprintf(stderr, "programs: cannot read this program: %s\n", strerror(errno));
        return 2;
    }
    for (unsigned long i = 0; i < count; i++) {
        memcpy(file, original, length);
        size_t changed = mutate(file, length);
        unlink("/tmp/changed");
        int out = open("/tmp/changed", O_WRONLY | O_CREAT | O_TRUNC, 0755);
        if (out < 0 || write(out, file, changed) != (ssize_t)changed) {
            fprintf(stderr, "programs: cannot write a program: %s\n", strerror(errno));
            return 2;
        }
        close(out);
        pid_t pid = fork();
        if (pid == 0) {
            struct rlimit cpu = { 1, 1 }, memory = { 256 << 20, 256 << 20 };
            setrlimit(RLIMIT_CPU, &cpu);
            setrlimit(RLIMIT_AS, &memory);
            alarm(2);
            for (int fd = 0; fd < 3; fd++)
                close(fd);
            execl("/tmp/changed", "changed", NULL);
            _exit(200);
        }
        int status = 0;
        if (pid < 0 || waitpid(pid, &status, 0) != pid) {
            fprintf(stderr, "programs: %s\n", strerror(errno));
            return 2;
        }
        refused += WIFEXITED(status) && WEXITSTATUS(status) == 200;
        if (i % 500 == 499) {
            printf("programs: %lu executed\n", i + 1);
            fflush(stdout);
        }
    }
    printf("programs: %lu executed, %lu refused, seed %lu, done\n", count, refused, (unsigned long)seed);
    fflush(stdout);
    if (first) {
        sync();
        reboot(RB_POWER_OFF);
    }
    return 0;
}
