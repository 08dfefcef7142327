// /proc files about the whole system: present, and in the form that free, top, uptime and df read.
#include "../check.h"

static int has_keys(const char *path, const char *const *keys, int count)
{
    FILE *file = fopen(path, "r");
    char line[4096];
    int found = 0;
    while (file && fgets(line, sizeof line, file))
        for (int i = 0; i < count; i++) {
            size_t length = strlen(keys[i]);
            found += strncmp(line, keys[i], length) == 0 && (line[length] == ':' || line[length] == ' ' || line[length] == '\t');
        }
    return found;
}

int main(void)
{
    static const char *const memory[] = { "MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "SwapTotal", "SwapFree", "Shmem" };
    CHECK("meminfo", has_keys("/proc/meminfo", memory, 8));
    long total = 0, available = 0, free_memory = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    char line[4096];
    while (file && fgets(line, sizeof line, file)) {
        sscanf(line, "MemTotal: %ld kB", &total);
        sscanf(line, "MemFree: %ld kB", &free_memory);
        sscanf(line, "MemAvailable: %ld kB", &available);
    }
    CHECK_TRUE("memory-order", total > 0 && free_memory > 0 && free_memory <= total && available <= total);
    static const char *const statistics[] = { "cpu", "cpu0", "ctxt", "btime", "processes", "procs_running" };
    CHECK_TRUE("stat", has_keys("/proc/stat", statistics, 6) >= 6);
    double up = 0, idle = 0;
    CHECK("uptime", sscanf(check_read_file("/proc/uptime"), "%lf %lf", &up, &idle));
    struct timespec boot;
    clock_gettime(CLOCK_BOOTTIME, &boot);
    CHECK_TRUE("uptime-agrees", up > 0 && up <= boot.tv_sec + 1.0);
    double one, five, fifteen;
    int running, threads, last;
    CHECK("loadavg", sscanf(check_read_file("/proc/loadavg"), "%lf %lf %lf %d/%d %d", &one, &five, &fifteen, &running, &threads, &last));
    CHECK_TRUE("version", strncmp(check_read_file("/proc/version"), "Linux version ", 14) == 0);
    CHECK_STR("ostype", check_read_file("/proc/sys/kernel/ostype"));
    CHECK_TRUE("pid-max", atoi(check_read_file("/proc/sys/kernel/pid_max")) >= 32768);
    CHECK_TRUE("mounts", access("/proc/mounts", R_OK) == 0);
    static const char *const processor[] = { "processor", "vendor_id", "model name", "flags" };
    CHECK_TRUE("cpuinfo", has_keys("/proc/cpuinfo", processor, 4) >= 4);
    CHECK_TRUE("filesystems", strstr(check_read_file("/proc/filesystems"), "proc") != NULL);
    CHECK_TRUE("cmdline", access("/proc/cmdline", R_OK) == 0);
    // Seeking and reading in parts gives the same text.
    int fd = open("/proc/version", O_RDONLY);
    char parts[512] = { 0 }, whole[512] = { 0 };
    ssize_t length = read(fd, whole, sizeof whole - 1), at = 0;
    CHECK("rewind", lseek(fd, 0, SEEK_SET));
    while (at < length && read(fd, parts + at, 1) == 1)
        at++;
    CHECK_TRUE("in-parts", length > 0 && at == length && memcmp(parts, whole, length) == 0);
    CHECK("end", read(fd, parts, 1));
    CHECK("pread", pread(fd, parts, 5, 0));
    struct stat st;
    CHECK("size-zero", stat("/proc/version", &st) == 0 ? st.st_size : -1);
    return 0;
}
