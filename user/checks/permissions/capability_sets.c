// The capability sets of a thread: capset, prctl, changes of user ids, execve. See capabilities(7).
#include "../check.h"
#include "capabilities.h"
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/xattr.h>

static uint64_t line(const char *name)
{
    char text[4096];
    int fd = open("/proc/thread-self/status", O_RDONLY);
    REQUIRE(fd >= 0);
    ssize_t len = read(fd, text, sizeof text - 1);
    REQUIRE(len > 0);
    close(fd);
    text[len] = 0;
    char *found = strstr(text, name);
    REQUIRE(found);
    return strtoull(found + strlen(name), NULL, 16);
}

static void show(const char *name)
{
    check_line("%s: e %llx p %llx i %llx b %llx a %llx\n", name, (unsigned long long)(line("CapEff:") & SHOWN),
               (unsigned long long)(line("CapPrm:") & SHOWN), (unsigned long long)(line("CapInh:") & SHOWN),
               (unsigned long long)(line("CapBnd:") & SHOWN), (unsigned long long)(line("CapAmb:") & SHOWN));
}

static void run(const char *program, const char *name)
{
    execl(program, program, name, NULL);
    CHECK("exec", -1);
}

static void capset_rules(void)
{
    uint64_t all = line("CapPrm:");
    CHECK("effective-not-permitted", set(BIT(CAP_KILL), 0, 0));
    CHECK("inheritable", set(all, all, BIT(CAP_KILL)));
    show("inheritable-set");
    CHECK("drop-bounding", prctl(PR_CAPBSET_DROP, CAP_CHOWN, 0, 0, 0));
    CHECK("inheritable-beyond-bounding", set(all, all, BIT(CAP_CHOWN)));
    CHECK("less", set(BIT(CAP_KILL) | BIT(CAP_SETPCAP), BIT(CAP_KILL) | BIT(CAP_CHOWN) | BIT(CAP_SETPCAP), BIT(CAP_KILL)));
    show("less-set");
    CHECK("raise-effective", set(BIT(CAP_KILL) | BIT(CAP_CHOWN), BIT(CAP_KILL) | BIT(CAP_CHOWN), BIT(CAP_KILL)));
    CHECK("raise-permitted", set(0, BIT(CAP_FOWNER), 0));
    CHECK("inheritable-not-permitted", set(0, 0, BIT(CAP_FOWNER)));
    CHECK("unknown-bits", set(1ULL << 63, 1ULL << 63, 1ULL << 63));
    show("unknown-bits-set");
}

static void headers(void)
{
    struct __user_cap_header_struct header = { 0, 0 };
    struct __user_cap_data_struct data[2];
    CHECK("no-version", syscall(SYS_capget, &header, data));
    check_line("version: %x\n", header.version);
    header.version = 0;
    CHECK("ask-version", syscall(SYS_capget, &header, NULL));
    check_line("version: %x\n", header.version);
    header = (struct __user_cap_header_struct){ _LINUX_CAPABILITY_VERSION_1, 0 };
    CHECK("version-1", syscall(SYS_capget, &header, data));
    header = (struct __user_cap_header_struct){ _LINUX_CAPABILITY_VERSION_2, 0 };
    CHECK("version-2", syscall(SYS_capget, &header, data));
    header = (struct __user_cap_header_struct){ _LINUX_CAPABILITY_VERSION_3, -1 };
    CHECK("negative", syscall(SYS_capget, &header, data));
    header.pid = 0x3fffffff;
    CHECK("nobody", syscall(SYS_capget, &header, data));
    header.pid = 1;
    CHECK("set-another", syscall(SYS_capset, &header, data));
    header.pid = 0;
    CHECK("set-nowhere", syscall(SYS_capset, &header, BAD_POINTER));
    CHECK("header-nowhere", syscall(SYS_capget, BAD_POINTER, data));
}

static void bounding(void)
{
    CHECK("read", prctl(PR_CAPBSET_READ, CAP_KILL, 0, 0, 0));
    CHECK("read-unknown", prctl(PR_CAPBSET_READ, 63, 0, 0, 0));
    CHECK("drop-unknown", prctl(PR_CAPBSET_DROP, 63, 0, 0, 0));
    CHECK("drop", prctl(PR_CAPBSET_DROP, CAP_KILL, 0, 0, 0));
    CHECK("read-dropped", prctl(PR_CAPBSET_READ, CAP_KILL, 0, 0, 0));
    show("dropped");
    run("/proc/self/exe", "dropped-exec");
}

static void ambient(void)
{
    uint64_t all = line("CapPrm:");
    CHECK("raise-not-inheritable", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0));
    REQUIRE(set(all, all, BIT(CAP_KILL) | BIT(CAP_CHOWN)) == 0);
    CHECK("raise", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0));
    CHECK("raise-again", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0));
    CHECK("is-set", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_KILL, 0, 0));
    CHECK("is-not-set", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_FOWNER, 0, 0));
    CHECK("lower", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_LOWER, CAP_CHOWN, 0, 0));
    CHECK("unknown", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 63, 0, 0));
    CHECK("junk", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 1, 0));
    CHECK("action", prctl(PR_CAP_AMBIENT, 17, CAP_KILL, 0, 0));
    CHECK("clear-junk", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 1, 0, 0));
    show("raised");
    CHECK_CHILD("lost-with-inheritable", REQUIRE(set(all, all, 0) == 0); show("now"));
    CHECK_CHILD("lost-with-root", REQUIRE(setresuid(1234, 1234, 1234) == 0); show("now"));
    CHECK_CHILD("cleared", CHECK("clear", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)); show("now"));
    CHECK_CHILD("kept-by-user", REQUIRE(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP | SECBIT_NOROOT, 0, 0, 0) == 0); REQUIRE(setresuid(1234, 1234, 1234) == 0);
                run("/proc/self/exe", "ambient-exec"));
    CHECK_CHILD("forbidden", REQUIRE(prctl(PR_SET_SECUREBITS, SECBIT_NO_CAP_AMBIENT_RAISE, 0, 0, 0) == 0);
                CHECK("raise", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0)));
}

static void secure_bits(void)
{
    CHECK("none", prctl(PR_GET_SECUREBITS));
    CHECK("set", prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED, 0, 0, 0));
    CHECK("get", prctl(PR_GET_SECUREBITS));
    CHECK("unlock", prctl(PR_SET_SECUREBITS, SECBIT_NOROOT, 0, 0, 0));
    CHECK("change-locked", prctl(PR_SET_SECUREBITS, SECBIT_NOROOT_LOCKED, 0, 0, 0));
    CHECK("unknown", prctl(PR_SET_SECUREBITS, 1 << 20, 0, 0, 0));
    CHECK("keep", prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
    CHECK("get-keep", prctl(PR_GET_SECUREBITS));
    CHECK("keep-2", prctl(PR_SET_KEEPCAPS, 2, 0, 0, 0));
    CHECK("lock-keep", prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_KEEP_CAPS_LOCKED, 0, 0, 0));
    CHECK("keep-locked", prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
    run("/proc/self/exe", "no-root-exec");
}

static void file_system_user(void)
{
    show("before");
    CHECK("fsuid", setfsuid(1234));
    show("as-user");
    CHECK("back", setfsuid(0));
    show("back-as-root");
    uint64_t all = line("CapPrm:");
    REQUIRE(set(0, all, 0) == 0);
    setfsuid(1234);
    setfsuid(0);
    show("raised-by-fsuid");
}

static void user_ids(void)
{
    CHECK_CHILD("effective", REQUIRE(seteuid(1234) == 0); show("as-user"); REQUIRE(seteuid(0) == 0); show("as-root"));
    CHECK_CHILD("all", REQUIRE(setuid(1234) == 0); show("as-user"));
    CHECK_CHILD("keep", prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0); REQUIRE(setuid(1234) == 0); show("as-user"); run("/proc/self/exe", "keep-exec"));
    CHECK_CHILD("no-fixup", REQUIRE(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) == 0); REQUIRE(setuid(1234) == 0); show("as-user"));
    CHECK_CHILD("real-only", REQUIRE(setresuid(0, 1234, 1234) == 0); show("as-user"); run("/proc/self/exe", "real-only-exec"));
    CHECK_CHILD("dumpable", CHECK("at-first", prctl(PR_GET_DUMPABLE)); prctl(PR_SET_PDEATHSIG, SIGTERM); REQUIRE(setuid(1234) == 0); CHECK("dumpable", prctl(PR_GET_DUMPABLE));
                int signal = 0; prctl(PR_GET_PDEATHSIG, &signal); check_line("death signal: %d\n", signal); CHECK("set", prctl(PR_SET_DUMPABLE, 1)); CHECK("dumpable", prctl(PR_GET_DUMPABLE)));
}

static void executions(void)
{
    CHECK_CHILD("root-regains", REQUIRE(set(0, 0, 0) == 0); run("/proc/self/exe", "regained"));
    CHECK_CHILD("root-must-not-gain", REQUIRE(set(0, 0, 0) == 0); REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0); run("/proc/self/exe", "not-regained"));
    CHECK_CHILD("user", REQUIRE(setuid(1234) == 0); run("/proc/self/exe", "user"));
    CHECK_CHILD("set-user-id", REQUIRE(setuid(1234) == 0); run("./root", "gained"));
    CHECK_CHILD("set-user-id-nnp", REQUIRE(setuid(1234) == 0); REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0); run("./root", "not-gained"));
    CHECK_CHILD("set-user-id-other", run("./other", "other"));
}

// A copy of this program.
static void copy(const char *name, mode_t mode, uid_t owner)
{
    char block[4096];
    ssize_t len;
    int from = open("/proc/self/exe", O_RDONLY), to = open(name, O_CREAT | O_WRONLY, 0700);
    REQUIRE(from >= 0 && to >= 0);
    while ((len = read(from, block, sizeof block)) > 0)
        REQUIRE(write(to, block, (size_t)len) == len);
    REQUIRE(fchown(to, owner, owner) == 0 && fchmod(to, mode) == 0);
    close(from);
    close(to);
}

// The extended attribute that gives a program capabilities: version 2 of struct vfs_cap_data.
static int give(const char *name, uint64_t permitted, uint64_t inheritable, uint32_t flags)
{
    uint32_t data[5] = { 0x02000000 | flags, (uint32_t)permitted, (uint32_t)inheritable, (uint32_t)(permitted >> 32), (uint32_t)(inheritable >> 32) };
    return setxattr(name, "security.capability", data, sizeof data, 0);
}

static void file_capabilities(void)
{
    copy("kill", 0755, 0);
    CHECK("malformed", setxattr("kill", "security.capability", "xyz", 3, 0));
    CHECK("give", give("kill", BIT(CAP_KILL), 0, 1));
    CHECK_CHILD("effective", REQUIRE(setuid(1234) == 0); run("./kill", "effective-exec"));
    CHECK_CHILD("nnp", REQUIRE(setuid(1234) == 0); REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0); run("./kill", "nnp-exec"));
    CHECK_CHILD("unbounded", REQUIRE(prctl(PR_CAPBSET_DROP, CAP_KILL, 0, 0, 0) == 0); REQUIRE(setuid(1234) == 0); run("./kill", "unbounded-exec"));
    CHECK_CHILD("without", REQUIRE(set(0, 0, 0) == 0); CHECK("give", give("kill", BIT(CAP_KILL), 0, 1)));
    CHECK("permitted-only", give("kill", BIT(CAP_KILL), 0, 0));
    CHECK_CHILD("permitted", REQUIRE(setuid(1234) == 0); run("./kill", "permitted-exec"));
    CHECK("inheritable-only", give("kill", 0, BIT(CAP_CHOWN), 1));
    CHECK_CHILD("inheritable", uint64_t all = line("CapPrm:"); REQUIRE(set(all, all, BIT(CAP_CHOWN) | BIT(CAP_KILL)) == 0); REQUIRE(setuid(1234) == 0);
                run("./kill", "inheritable-exec"));
    // Who writes to the program takes them away.
    char data[32];
    REQUIRE(truncate("kill", 100) == 0);
    CHECK("after-write", getxattr("kill", "security.capability", data, sizeof data));
    CHECK("give-again", give("kill", BIT(CAP_KILL), 0, 1));
    REQUIRE(chown("kill", 1234, 1234) == 0);
    CHECK("after-chown", getxattr("kill", "security.capability", data, sizeof data));
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        show(argv[1]);
        check_line("%s: ids %u %u %u, bits %x\n", argv[1], getuid(), geteuid(), setfsuid(-1), prctl(PR_GET_SECUREBITS));
        return 0;
    }
    umask(022);
    REQUIRE(chmod(".", 0755) == 0);
    copy("root", 04755, 0);
    copy("other", 04755, 1234);
    CHECK_CHILD("capset", capset_rules());
    CHECK_CHILD("headers", headers());
    CHECK_CHILD("bounding", bounding());
    CHECK_CHILD("ambient", ambient());
    CHECK_CHILD("securebits", secure_bits());
    CHECK_CHILD("fsuid", file_system_user());
    CHECK_CHILD("uids", user_ids());
    CHECK_CHILD("exec", executions());
    CHECK_CHILD("files", file_capabilities());
    return 0;
}
