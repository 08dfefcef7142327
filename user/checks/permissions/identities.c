// User and group identities: real, effective, saved; who may change to whom.
#include "../check.h"
#include <grp.h>
#include <sys/fsuid.h>

static void show(const char *name)
{
    uid_t r, e, s;
    gid_t gr, ge, gs;
    REQUIRE(getresuid(&r, &e, &s) == 0 && getresgid(&gr, &ge, &gs) == 0);
    check_line("%s: %u %u %u / %u %u %u\n", name, r, e, s, gr, ge, gs);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        show(argv[1]);
        return 0;
    }
    show("start");
    CHECK_CHILD("setuid-as-root", CHECK("call", setuid(1000)); show("ids"); CHECK("back", setuid(0));
                CHECK("seteuid-back", seteuid(0)); CHECK("same", setuid(1000)));
    CHECK_CHILD("seteuid", CHECK("call", seteuid(1000)); show("ids"); CHECK("other", seteuid(1001)); CHECK("back", seteuid(0));
                show("ids-back"));
    CHECK_CHILD("setresuid", CHECK("call", setresuid(1, 2, 3)); show("ids"); CHECK("to-saved", setresuid(-1, 3, -1));
                CHECK("to-real", setresuid(-1, 1, -1)); CHECK("to-foreign", setresuid(-1, 4, -1)); show("ids-after"));
    CHECK_CHILD("setreuid", CHECK("call", setreuid(10, 20)); show("ids"); CHECK("swap", setreuid(20, 10)); show("ids-swapped"));
    CHECK_CHILD("setgid", CHECK("call", setgid(500)); show("ids"); CHECK("setuid", setuid(1000)); CHECK("setgid-foreign", setgid(501));
                CHECK("setgid-own", setgid(500)));
    CHECK_CHILD("setresgid", CHECK("call", setresgid(7, 8, 9)); show("ids"); REQUIRE(setuid(1000) == 0);
                CHECK("to-saved", setresgid(-1, 9, -1)); CHECK("foreign", setresgid(-1, 6, -1)); CHECK("setregid", setregid(9, 7)); show("after"));
    gid_t many[3] = { 30, 10, 20 }, got[8];
    CHECK("setgroups", setgroups(3, many));
    CHECK("getgroups-count", getgroups(0, NULL));
    CHECK("getgroups", getgroups(8, got));
    CHECK("groups-sum", got[0] + got[1] + got[2]);
    CHECK("getgroups-short", getgroups(2, got));
    CHECK("getgroups-negative", getgroups(-1, got));
    CHECK_CHILD("inherited-groups", CHECK("count", getgroups(0, NULL)));
    CHECK_CHILD("setgroups-unprivileged", REQUIRE(setuid(1000) == 0); CHECK("refused", setgroups(1, many)));
    CHECK("setgroups-too-many", syscall(SYS_setgroups, 70000, many));
    CHECK_CHILD("setfsuid", CHECK("old", setfsuid(1000)); CHECK("now", setfsuid(-1)));
    CHECK_CHILD("setfsgid", CHECK("old", setfsgid(500)); CHECK("now", setfsgid(-1)); CHECK("kept", setfsgid(-1)); show("ids"); check_write_file("of-group", "x");
                struct stat st; REQUIRE(stat("of-group", &st) == 0); CHECK("group-of-file", st.st_gid); CHECK("back", setfsgid(0)); CHECK("was", setfsgid(-1)));
    CHECK_CHILD("setfsgid-unprivileged", REQUIRE(setresgid(7, 8, 9) == 0 && setuid(1000) == 0); CHECK("old", setfsgid(7)); CHECK("real", setfsgid(9)); CHECK("saved", setfsgid(10));
                CHECK("foreign-refused", setfsgid(8)); CHECK("effective", setfsgid(-1)); REQUIRE(setregid(-1, 7) == 0); CHECK("follows-effective", setfsgid(-1)));
    CHECK("setuid-negative", syscall(SYS_setuid, -1));
    CHECK("setresuid-keep", setresuid(-1, -1, -1));
    CHECK_CHILD("exec-saves-effective", REQUIRE(setresuid(100, 200, 300) == 0); execl("/proc/self/exe", "self", "after-exec", NULL);
                _exit(errno));
    // A process of another user cannot be signalled.
    pid_t victim = check_fork();
    if (victim == 0) {
        pause();
        _exit(0);
    }
    CHECK_CHILD("kill-foreign", REQUIRE(setuid(1000) == 0); CHECK("terminate", kill(victim, SIGTERM)); CHECK("probe", kill(victim, 0)));
    CHECK("kill-as-root", kill(victim, SIGTERM));
    CHECK_STATUS("victim", check_wait(victim));
    return 0;
}
