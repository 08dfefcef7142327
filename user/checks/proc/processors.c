// How many cores there are, which everything that tells it says alike: procfs, sysfs, the affinity and the C library. The number itself is no fact.
#include "../check.h"

#include <dirent.h>
#include <sched.h>
#include <time.h>
#include <sys/wait.h>

static int cores;

// The set that a list like `0-1,3` means; -1 if it is none, else how many cores it has.
static int read_list(const char *text, cpu_set_t *set)
{
    CPU_ZERO(set);
    while (*text) {
        char *end;
        long from = strtol(text, &end, 10), to = from;
        if (end == text)
            return -1;
        if (*end == '-') {
            text = end + 1;
            to = strtol(text, &end, 10);
            if (end == text)
                return -1;
        }
        for (; from <= to && from < CPU_SETSIZE; from++)
            CPU_SET(from, set);
        if (*end == ',')
            end++;
        text = end;
    }
    return CPU_COUNT(set);
}

static int in_list(const char *path)
{
    cpu_set_t set;
    return read_list(check_read_file(path), &set);
}

// Lines that begin so, and whether the numbers behind that go up from 0 without a gap.
static int lines_with(const char *path, const char *start, int *in_order)
{
    FILE *file = fopen(path, "r");
    char line[8192];
    int found = 0;
    *in_order = 1;
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, start, strlen(start)) != 0)
            continue;
        const char *number = line + strlen(start) + strspn(line + strlen(start), " \t:");
        if (number[0] < '0' || number[0] > '9')
            continue;
        *in_order &= atoi(number) == found;
        found++;
    }
    if (file)
        fclose(file);
    return found;
}

static void in_procfs(void)
{
    int in_order;
    CHECK_TRUE("cpuinfo-processors", lines_with("/proc/cpuinfo", "processor\t", &in_order) == cores && in_order);
    CHECK_TRUE("cpuinfo-core-ids", lines_with("/proc/cpuinfo", "core id\t", &in_order) == cores);
    CHECK_TRUE("cpuinfo-siblings", lines_with("/proc/cpuinfo", "siblings\t", &in_order) == cores);
    // The line `cpu` has a space behind it, those of cores a number.
    FILE *file = fopen("/proc/stat", "r");
    char line[8192];
    int found = 0;
    long long sum[10] = { 0 }, all[10] = { 0 };
    while (file && fgets(line, sizeof line, file) && strncmp(line, "cpu", 3) == 0) {
        long long times[10];
        char *at = line + 3;
        int number = *at == ' ' ? -1 : (int)strtol(at, &at, 10), fields = 0;
        for (char *end; fields < 10; fields++, at = end) {
            times[fields] = strtoll(at, &end, 10);
            if (end == at)
                break;
        }
        if (number < 0)
            memcpy(all, times, sizeof all);
        else
            for (int i = 0; i < 10; i++)
                sum[i] += times[i];
        if (fields != 10 || (number >= 0 && number != found))
            break;
        found += number >= 0;
    }
    if (file)
        fclose(file);
    CHECK_TRUE("stat-lines", found == cores);
    // Rounded down for each core.
    int adds_up = 1;
    for (int i = 0; i < 10; i++)
        adds_up &= sum[i] <= all[i] && sum[i] >= all[i] - cores;
    CHECK_TRUE("stat-adds-up", adds_up);

    found = 0;
    char *header = strdup(check_read_file("/proc/interrupts"));
    if (strchr(header, '\n'))
        *strchr(header, '\n') = 0;
    for (char *column = header; (column = strstr(column, "CPU")); column++)
        found++;
    CHECK_TRUE("interrupts-columns", found == cores);
    free(header);

    cpu_set_t mine, listed;
    REQUIRE(sched_getaffinity(0, sizeof mine, &mine) == 0);
    int masks = 0, lists = 0;
    file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        // 32 bits at a time with commas between; here only the last word counts.
        char *word = strrchr(line, ',') ? strrchr(line, ',') + 1 : line + 13;
        if (strncmp(line, "Cpus_allowed:", 13) == 0)
            masks += strtoul(word, NULL, 16) == (*(unsigned long *)&mine & 0xffffffff);
        if (strncmp(line, "Cpus_allowed_list:", 18) == 0)
            lists += read_list(line + 18 + strspn(line + 18, "\t"), &listed) >= 0 && CPU_EQUAL(&listed, &mine);
    }
    if (file)
        fclose(file);
    CHECK("status-mask", masks);
    CHECK("status-list", lists);
}

// What `/proc/stat` says of a core: ticks that it spent in programs and the kernel.
static long long busy_ticks(int core)
{
    FILE *file = fopen("/proc/stat", "r");
    char line[8192], name[16];
    long long user, nice, system, ticks = -1;
    int length = snprintf(name, sizeof name, "cpu%d ", core);
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, length) == 0 && sscanf(line + length, "%lld %lld %lld", &user, &nice, &system) == 3)
            ticks = user + nice + system;
    if (file)
        fclose(file);
    return ticks;
}

static long long number_in_stat(const char *name)
{
    FILE *file = fopen("/proc/stat", "r");
    char line[8192];
    long long number = -1;
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ' ')
            number = atoll(line + strlen(name));
    if (file)
        fclose(file);
    return number;
}

static long long own_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

// A core's line tells what that core has done: whoever computes on it for 0.3 s adds 30 ticks there, of which a few may be lost to rounding.
static void what_each_has_done(const cpu_set_t *may)
{
    int own = 1, tried = 0;
    for (int core = 0; core < CPU_SETSIZE && tried < 4; core++) {
        cpu_set_t here;
        CPU_ZERO(&here);
        CPU_SET(core, &here);
        if (!CPU_ISSET(core, may) || sched_setaffinity(0, sizeof here, &here) != 0)
            continue;
        tried++;
        long long before = busy_ticks(core), began = own_time();
        while (own_time() - began < 300000000)
            ;
        own &= before >= 0 && busy_ticks(core) - before >= 24;
    }
    CHECK_TRUE("each-core-tells-its-own-time", own && tried > 0);
    // Two that wait for each other on one core, a hundred times.
    int there[2], back[2];
    REQUIRE(pipe(there) == 0 && pipe(back) == 0);
    long long before = number_in_stat("ctxt");
    char byte = 0;
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        for (int i = 0; i < 100; i++)
            if (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1)
                _exit(1);
        _exit(0);
    }
    int went = 1;
    for (int i = 0; i < 100; i++)
        went &= write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1;
    int status;
    CHECK_TRUE("went", went && waitpid(child, &status, 0) == child && status == 0);
    CHECK_TRUE("switches-are-counted", before >= 0 && number_in_stat("ctxt") - before >= 200);
    sched_setaffinity(0, sizeof *may, may);
}

#define CPU "/sys/devices/system/cpu"

static void in_sysfs(void)
{
    cpu_set_t online, possible, present;
    CHECK_TRUE("online", read_list(check_read_file(CPU "/online"), &online) == cores);
    CHECK_TRUE("online-is-present", read_list(check_read_file(CPU "/present"), &present) >= cores);
    CHECK_TRUE("present-is-possible", read_list(check_read_file(CPU "/possible"), &possible) >= CPU_COUNT(&present));
    cpu_set_t both;
    CPU_AND(&both, &online, &present);
    CHECK_TRUE("online-in-present", CPU_EQUAL(&both, &online));
    CPU_AND(&both, &present, &possible);
    CHECK_TRUE("present-in-possible", CPU_EQUAL(&both, &present));
    CHECK_TRUE("isolated", in_list(CPU "/isolated") >= 0);
    CHECK_TRUE("offline", in_list(CPU "/offline") >= 0);
    CHECK_TRUE("kernel-max", atoi(check_read_file(CPU "/kernel_max")) + 1 >= CPU_COUNT(&possible));
    int found = 0;
    DIR *directory = opendir(CPU);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        char *end;
        long number = strtol(entry->d_name + 3, &end, 10);
        found += strncmp(entry->d_name, "cpu", 3) == 0 && end != entry->d_name + 3 && *end == 0 && CPU_ISSET(number, &present);
    }
    if (directory)
        closedir(directory);
    CHECK_TRUE("directories", found == CPU_COUNT(&present));
    static const char *const topology[] = { "core_id", "physical_package_id", "thread_siblings_list", "core_siblings_list", "core_cpus_list",
                                            "package_cpus_list" };
    for (int i = 0; i < 6; i++) {
        char path[128];
        snprintf(path, sizeof path, CPU "/cpu0/topology/%s", topology[i]);
        const char *text = check_read_file(path);
        CHECK_TRUE(topology[i], text[0] >= '0' && text[0] <= '9');
    }
    CHECK_TRUE("package-has-its-core", in_list(CPU "/cpu0/topology/package_cpus_list") >= 1);
    struct stat status;
    CHECK_TRUE("files-are-read-only", stat(CPU "/online", &status) == 0 && (status.st_mode & 07777) == 0444);
    CHECK_TRUE("files-have-a-page", status.st_size == 4096 && S_ISREG(status.st_mode));
    CHECK("directory", stat(CPU "/cpu0", &status) == 0 && S_ISDIR(status.st_mode));
    CHECK("no-such-core", access(CPU "/cpu4095", F_OK));
    CHECK("no-new-file", open(CPU "/new", O_WRONLY | O_CREAT, 0600));
    CHECK("no-new-directory", mkdir(CPU "/new", 0700));
    CHECK("no-removal", unlink(CPU "/online"));
    // In pieces the text is the same.
    char pieces[64] = { 0 };
    int fd = open(CPU "/online", O_RDONLY);
    REQUIRE(fd >= 0);
    int length = 0;
    while (length < 63 && read(fd, pieces + length, 1) == 1)
        length++;
    CHECK_TRUE("in-pieces", length > 0 && pieces[length - 1] == '\n');
    pieces[length - 1] = 0;
    CHECK_TRUE("the-same", strcmp(pieces, check_read_file(CPU "/online")) == 0);
    CHECK("end", read(fd, pieces, 1));
    CHECK("write", write(fd, "0", 1));
    close(fd);
    CHECK("open-for-writing", open(CPU "/online", O_WRONLY));
}

int main(void)
{
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    sched_setaffinity(0, sizeof all, &all);
    CHECK_TRUE("read", (cores = in_list(CPU "/online")) >= 1);
    REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
    CHECK_TRUE("affinity", CPU_COUNT(&all) <= cores);
    CHECK_TRUE("library-online", sysconf(_SC_NPROCESSORS_ONLN) == CPU_COUNT(&all));
    CHECK_TRUE("library-configured", sysconf(_SC_NPROCESSORS_CONF) >= CPU_COUNT(&all));
    in_procfs();
    what_each_has_done(&all);
    in_sysfs();
    return 0;
}
