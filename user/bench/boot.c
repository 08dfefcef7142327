// The first user instruction: prints the time stamp counter as it was when the first instruction of process 1 ran,
// as `boot<TAB>ticks`, and powers the machine off. Built without a C library (`-nostdlib -static`), so that nothing
// runs before it. Under QEMU's `-icount shift=0` the counter starts with the machine and counts guest instructions.

static long call(long number, long a, long b, long c, long d)
{
    long result;
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth)
                     : "rcx", "r11", "memory");
    return result;
}

__attribute__((used, noreturn)) static void report(unsigned long ticks)
{
    enum { WRITE = 1, OPEN = 2, MKDIR = 83, MOUNT = 165, REBOOT = 169, EXIT = 60 };
    char line[32] = "boot\t";
    int length = 5;
    char digits[24];
    int count = 0;
    do
        digits[count++] = (char)('0' + ticks % 10);
    while ((ticks /= 10) != 0);
    while (count > 0)
        line[length++] = digits[--count];
    line[length++] = '\n';
    if (call(WRITE, 1, (long)line, length, 0) != length) {
        // No console was opened for us: Linux does that only if the initial file system has the device.
        call(MKDIR, (long)"/dev", 0755, 0, 0);
        call(MOUNT, (long)"devtmpfs", (long)"/dev", (long)"devtmpfs", 0);
        call(WRITE, call(OPEN, (long)"/dev/console", 1, 0, 0), (long)line, length, 0);
    }
    call(REBOOT, 0xfee1dead, 672274793, 0x4321fedc, 0);
    for (;;)
        call(EXIT, 0, 0, 0, 0);
}

__asm__(".globl _start\n_start:\n"
        "rdtsc\n"
        "shl $32, %rdx\n"
        "lea (%rax, %rdx), %rdi\n"
        "and $-16, %rsp\n"
        "call report\n");
