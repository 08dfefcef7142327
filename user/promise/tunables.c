// What can be set in /proc/sys takes CAP_SYS_ADMIN, keeps within its bounds, and holds at once. (On Linux this would change the machine that runs it.)
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *name_of(int error)
{
    return error == EPERM ? "EPERM" : error == EACCES ? "EACCES" : error == EINVAL ? "EINVAL" : strerror(error);
}

static const char *put(const char *name, const char *value)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/sys/%s", name);
    int fd = open(path, O_WRONLY);
    if (fd < 0)
        return name_of(errno);
    ssize_t written = write(fd, value, strlen(value));
    const char *outcome = written < 0 ? name_of(errno) : "done";
    close(fd);
    return outcome;
}

static const char *get(const char *name)
{
    static char text[64];
    char path[64];
    snprintf(path, sizeof path, "/proc/sys/%s", name);
    int fd = open(path, O_RDONLY);
    ssize_t len = read(fd, text, sizeof text - 1);
    close(fd);
    text[len > 0 ? len : 0] = 0;
    text[strcspn(text, "\n\t")] = 0;
    return text;
}

static void try(const char *name, const char *value)
{
    const char *outcome = put(name, value);
    printf("%s %s: %s, now %s\n", name, value, outcome, get(name));
    fflush(stdout);
}

static void without_capabilities(void)
{
    struct {
        uint32_t version;
        int pid;
    } header = {0x20080522, 0};
    uint32_t none[6] = {0};
    syscall(SYS_capset, &header, none);
}

int main(void)
{
    try("kernel/pid_max", "40000");
    try("kernel/pid_max", "5");
    try("kernel/pid_max", "many");
    try("kernel/randomize_va_space", "1");
    try("kernel/randomize_va_space", "3");
    try("kernel/dmesg_restrict", "1");
    try("kernel/printk", "4 4 1 7");
    try("kernel/printk", "9");
    try("fs/file-max", "20000");
    try("fs/nr_open", "2048");
    try("fs/nr_open", "1");
    try("fs/pipe-max-size", "100000");
    try("fs/pipe-max-size", "-1");
    try("kernel/threads-max", "3");
    pid_t child = fork();
    if (child == 0) {
        without_capabilities();
        try("kernel/pid_max", "32768");
        try("fs/nr_open", "4096");
        try("kernel/hostname", "x");
        _exit(0);
    }
    waitpid(child, NULL, 0);
    child = fork();
    if (child == 0) {
        (void)!setuid(1000);
        try("kernel/pid_max", "32768");
        printf("log: %ld\n", syscall(SYS_syslog, 3, NULL, 0));
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    try("kernel/threads-max", "20");
    int made = 0;
    while (made < 100 && (child = fork()) >= 0) {
        if (child == 0) {
            pause();
            _exit(0);
        }
        made++;
    }
    printf("more threads than that: %s\n", made < 20 ? "no" : "yes");
    return 0;
}
