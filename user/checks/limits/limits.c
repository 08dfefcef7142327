// Resource limits: their values, inheritance, and what happens at them.
#include "../check.h"
#include <sys/resource.h>

static volatile sig_atomic_t size_signals;

static void note(int number)
{
    size_signals += number == SIGXFSZ;
}

int main(void)
{
    struct rlimit limit, old;
    REQUIRE(getrlimit(RLIMIT_NOFILE, &old) == 0);
    CHECK_TRUE("descriptors-sane", old.rlim_cur >= 256 && old.rlim_cur <= old.rlim_max);
    limit = (struct rlimit){ 10, old.rlim_max };
    CHECK("lower", setrlimit(RLIMIT_NOFILE, &limit));
    int last = -1, fd;
    while ((fd = open("/dev/null", O_RDONLY)) >= 0)
        last = fd;
    CHECK("at-limit", open("/dev/null", O_RDONLY));
    CHECK("last", last);
    CHECK("dup2-beyond", dup2(0, 10));
    CHECK("dupfd-beyond", fcntl(0, F_DUPFD, 10));
    CHECK("pipe-at-limit", pipe((int[2]){ 0, 0 }));
    CHECK_CHILD("inherited", struct rlimit now; REQUIRE(getrlimit(RLIMIT_NOFILE, &now) == 0); _exit(now.rlim_cur));
    close(last);
    CHECK("after-close", open("/dev/null", O_RDONLY) == last);
    limit.rlim_cur = old.rlim_cur;
    CHECK("raise-again", setrlimit(RLIMIT_NOFILE, &limit));
    limit = (struct rlimit){ 20, 10 };
    CHECK("soft-above-hard", setrlimit(RLIMIT_NOFILE, &limit));
    CHECK("unknown", getrlimit(99, &limit));
    CHECK_CHILD("hard-unprivileged", limit = (struct rlimit){ 10, 10 }; REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0 && setuid(1000) == 0);
                limit.rlim_max = 20; CHECK("raise-hard", setrlimit(RLIMIT_NOFILE, &limit)));
    struct rlimit got;
    CHECK("prlimit", prlimit(0, RLIMIT_NOFILE, NULL, &got) == 0 && got.rlim_cur == old.rlim_cur);
    CHECK("prlimit-missing", prlimit(0x3fffffff, RLIMIT_NOFILE, NULL, &got));
    // File size: a write is cut at the limit; at it, SIGXFSZ or EFBIG.
    char block[100] = { 0 };
    limit = (struct rlimit){ 250, RLIM_INFINITY };
    signal(SIGXFSZ, SIG_DFL);
    CHECK_CHILD("file-size-kills", limit.rlim_cur = 150; REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0); int out = open("a", O_CREAT | O_WRONLY, 0644);
                REQUIRE(write(out, block, 100) == 100 && write(out, block, 100) == 50); REQUIRE(write(out, block, 100) == -1));
    struct stat st;
    CHECK("file-size-reached", stat("a", &st) == 0 ? st.st_size : -1);
    struct sigaction action = { .sa_handler = note };
    sigaction(SIGXFSZ, &action, NULL);
    CHECK_CHILD("file-size-caught", limit.rlim_cur = 150; REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0); int out = open("b", O_CREAT | O_WRONLY, 0644);
                CHECK("partial", pwrite(out, block, 100, 100)); CHECK("beyond", pwrite(out, block, 100, 150)); CHECK("signals", size_signals);
                CHECK("truncate-beyond", ftruncate(out, 1000)); CHECK("signals-after", size_signals));
    signal(SIGXFSZ, SIG_DFL);
    // Processor time: SIGXCPU at the soft limit.
    limit = (struct rlimit){ 1, 3 };
    CHECK_CHILD("processor-time", REQUIRE(setrlimit(RLIMIT_CPU, &limit) == 0); for (;;) ;);
    // Usage counts what was done.
    struct rusage before, after;
    REQUIRE(getrusage(RUSAGE_SELF, &before) == 0);
    char *memory = malloc(4 << 20);
    memset(memory, 1, 4 << 20);
    REQUIRE(getrusage(RUSAGE_SELF, &after) == 0);
    CHECK_TRUE("faults-counted", after.ru_minflt > before.ru_minflt);
    CHECK_TRUE("peak-memory", after.ru_maxrss >= 4096);
    check_sleep_ms(5);
    REQUIRE(getrusage(RUSAGE_SELF, &after) == 0);
    CHECK_TRUE("voluntary-switches", after.ru_nvcsw > before.ru_nvcsw);
    REQUIRE(getrusage(RUSAGE_CHILDREN, &after) == 0);
    CHECK_TRUE("children-time", after.ru_utime.tv_sec * 1000000 + after.ru_utime.tv_usec + after.ru_stime.tv_sec * 1000000 + after.ru_stime.tv_usec > 500000);
    CHECK("unknown-usage", getrusage(7, &after));
    return 0;
}
