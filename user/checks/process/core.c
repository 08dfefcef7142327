// Core files: which signals leave one, the wait status, what is in it, and what prevents it.
//
// A machine may have another /proc/sys/kernel/core_pattern than a plain name, or a limit that nobody may raise; what depends on that is then not
// looked at.
#include "../check.h"
#include <elf.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/procfs.h>
#include <sys/resource.h>

static int is_plain; // Core files are called "core".
static char *marked, *hidden;

static void limit_core(rlim_t bytes)
{
    struct rlimit limit;
    REQUIRE(getrlimit(RLIMIT_CORE, &limit) == 0);
    is_plain = is_plain && limit.rlim_max >= 1 << 24;
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    REQUIRE(setrlimit(RLIMIT_CORE, &limit) == 0);
}

// Prints what holds where core files are plain files.
static void plain(const char *name, int condition)
{
    CHECK_TRUE(name, condition || !is_plain);
}

static int run(void (*child)(void), pid_t *pid)
{
    int status;
    unlink("core");
    fflush(stdout);
    *pid = check_fork();
    if (*pid == 0) {
        child();
        _exit(0);
    }
    REQUIRE(waitpid(*pid, &status, 0) == *pid);
    return status;
}

static void aborts(void) { abort(); }
static void quits(void) { kill(getpid(), SIGQUIT); }
static void terminates(void) { kill(getpid(), SIGTERM); }
static void is_killed(void) { kill(getpid(), SIGKILL); }
static void faults(void) { *(volatile char *)8 = 1; }
static void without_limit(void) { limit_core(0); abort(); }
static void with_small_limit(void) { limit_core(4095); abort(); }
static void not_dumpable(void) { prctl(PR_SET_DUMPABLE, 0); abort(); }
static void not_private(void)
{
    int fd = open("/proc/self/coredump_filter", O_WRONLY);
    REQUIRE(write(fd, "0x32\n", 5) == 5);
    abort();
}
static void *waits(void *unused)
{
    for (;;)
        pause();
    return unused;
}
static void has_threads(void)
{
    pthread_t thread;
    for (int i = 0; i < 5; i++)
        REQUIRE(pthread_create(&thread, NULL, waits, NULL) == 0);
    raise(SIGABRT);
}

static void outcome(const char *name, void (*child)(void), int dumps)
{
    pid_t pid;
    char text[64];
    int status = run(child, &pid);
    snprintf(text, sizeof text, "%s: signal", name);
    CHECK(text, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    snprintf(text, sizeof text, "%s: %s", name, dumps ? "a core is dumped" : "no core is dumped");
    plain(text, !WCOREDUMP(status) == !dumps);
    snprintf(text, sizeof text, "%s: %s", name, dumps ? "a file" : "no file");
    plain(text, (access("core", F_OK) == 0) == dumps);
}

// Where in the file the content of an address is; -1 if it is not there.
static long content(const char *file, unsigned long address)
{
    const Elf64_Ehdr *header = (const void *)file;
    const Elf64_Phdr *segments = (const void *)(file + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD && address >= segments[i].p_vaddr
            && address < segments[i].p_vaddr + segments[i].p_filesz)
            return segments[i].p_offset + (address - segments[i].p_vaddr);
    return -1;
}

static const void *note(const char *file, unsigned kind)
{
    const Elf64_Ehdr *header = (const void *)file;
    const Elf64_Phdr *segments = (const void *)(file + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type != PT_NOTE)
            continue;
        const char *at = file + segments[i].p_offset, *end = at + segments[i].p_filesz;
        while (at < end) {
            const Elf64_Nhdr *found = (const void *)at;
            const char *data = at + sizeof *found + ((found->n_namesz + 3) & ~3u);
            if (found->n_type == kind && strcmp(at + sizeof *found, "CORE") == 0)
                return data;
            at = data + ((found->n_descsz + 3) & ~3u);
        }
    }
    return NULL;
}

static void look_inside(void)
{
    pid_t pid;
    int status = run(aborts, &pid);
    plain("inside: dumped", WCOREDUMP(status) != 0);
    int fd = open("core", O_RDONLY);
    if (!is_plain || fd < 0) {
        for (const char *const *name = (const char *const[]){ "regular, of its owner alone", "an ELF core", "the thread's id",
                 "the signal", "the signal's origin", "the process", "the stack pointer is in a segment", "an auxiliary vector", "the memory",
                 "not what MADV_DONTDUMP hid", "but its addresses", NULL };
             *name; name++)
            plain(*name, 0);
        return;
    }
    struct stat stat;
    REQUIRE(fstat(fd, &stat) == 0);
    CHECK_TRUE("regular, of its owner alone", stat.st_mode == (S_IFREG | 0600));
    char *file = mmap(NULL, stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    REQUIRE(file != MAP_FAILED);
    const Elf64_Ehdr *header = (const void *)file;
    CHECK_TRUE("an ELF core", memcmp(file, ELFMAG, SELFMAG) == 0 && header->e_type == ET_CORE && header->e_machine == EM_X86_64);
    const struct elf_prstatus *thread = note(file, NT_PRSTATUS);
    CHECK_TRUE("the thread's id", thread && thread->pr_pid == pid && thread->pr_ppid == getpid());
    CHECK_TRUE("the signal", thread && thread->pr_cursig == SIGABRT);
    const siginfo_t *info = note(file, NT_SIGINFO);
    CHECK_TRUE("the signal's origin", info && info->si_signo == SIGABRT && info->si_code == SI_TKILL && info->si_pid == pid);
    const struct elf_prpsinfo *process = note(file, NT_PRPSINFO);
    CHECK_TRUE("the process", process && process->pr_pid == pid && process->pr_fname[0]);
    CHECK_TRUE("the stack pointer is in a segment", thread && content(file, thread->pr_reg[19]) > 0);
    CHECK_TRUE("an auxiliary vector", note(file, NT_AUXV) != NULL);
    long at = content(file, (unsigned long)marked + 5000);
    CHECK_TRUE("the memory", at > 0 && strcmp(file + at, "what a debugger wants to see") == 0);
    CHECK_TRUE("not what MADV_DONTDUMP hid", content(file, (unsigned long)hidden) == -1);
    const Elf64_Phdr *segments = (const void *)(file + header->e_phoff);
    int found = 0;
    for (int i = 0; i < header->e_phnum; i++)
        found |= segments[i].p_type == PT_LOAD && segments[i].p_vaddr <= (unsigned long)hidden
            && (unsigned long)hidden < segments[i].p_vaddr + segments[i].p_memsz;
    CHECK_TRUE("but its addresses", found);
    munmap(file, stat.st_size);
    close(fd);
}

int main(void)
{
    char text[64] = "";
    int fd = open("/proc/sys/kernel/core_pattern", O_RDONLY);
    int uses_pid = open("/proc/sys/kernel/core_uses_pid", O_RDONLY);
    REQUIRE(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    is_plain = strcmp(text, "core\n") == 0;
    if (uses_pid >= 0 && read(uses_pid, text, 1) == 1)
        is_plain = is_plain && text[0] == '0';
    CHECK_TRUE("core_uses_pid is there", uses_pid >= 0);
    limit_core(RLIM_INFINITY);
    marked = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    hidden = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    strcpy(marked + 5000, "what a debugger wants to see");
    strcpy(hidden, "what nobody is to see");
    CHECK("MADV_DONTDUMP", madvise(hidden, 8192, MADV_DONTDUMP));

    memset(text, 0, sizeof text);
    fd = open("/proc/self/coredump_filter", O_RDWR);
    CHECK("filter: read", read(fd, text, sizeof text - 1));
    CHECK_STR("filter", text);
    CHECK("filter: not a number", write(fd, "x", 1));

    look_inside();
    outcome("SIGABRT", aborts, 1);
    outcome("SIGQUIT", quits, 1);
    outcome("a fault", faults, 1);
    outcome("with threads", has_threads, 1);
    outcome("SIGTERM", terminates, 0);
    outcome("SIGKILL", is_killed, 0);
    outcome("no limit left", without_limit, 0);
    outcome("less than a page", with_small_limit, 0);
    outcome("not dumpable", not_dumpable, 0);
    outcome("without private memory", not_private, 1);

    // waitid tells the same.
    siginfo_t info = { 0 };
    pid_t pid = check_fork();
    if (pid == 0)
        abort();
    REQUIRE(waitid(P_PID, pid, &info, WEXITED) == 0);
    plain("waitid: CLD_DUMPED", info.si_code == CLD_DUMPED);
    CHECK("waitid: status", info.si_status);

    // What has the name already is replaced, not written to.
    unlink("core");
    fd = open("core", O_RDWR | O_CREAT, 0644);
    REQUIRE(write(fd, "mine", 4) == 4);
    pid = check_fork();
    if (pid == 0)
        abort();
    REQUIRE(waitpid(pid, NULL, 0) == pid);
    struct stat stat;
    REQUIRE(fstat(fd, &stat) == 0);
    CHECK("an older file stays as it was", stat.st_size);
    plain("and has lost its name", stat.st_nlink == 0);
    return 0;
}
