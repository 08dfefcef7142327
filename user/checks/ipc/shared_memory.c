// System V shared memory: shmget, shmat, shmdt, shmctl.
#include "own.h"
#include <grp.h>
#include <sys/fsuid.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

#define PAGE 4096

static struct shmid_ds stat_of(int id)
{
    struct shmid_ds status;
    memset(&status, 0, sizeof status);
    REQUIRE(shmctl(id, IPC_STAT, &status) == 0);
    return status;
}

static void show(const char *name, int id)
{
    struct shmid_ds status = stat_of(id);
    check_line("%s: %zu bytes, %lu attached, mode %o, made here %d, times %d %d %d, last %d\n", name, status.shm_segsz,
               (unsigned long)status.shm_nattch, status.shm_perm.mode, status.shm_cpid == getpid(), status.shm_atime != 0, status.shm_dtime != 0,
               status.shm_ctime != 0, status.shm_lpid == getpid());
}

// Where another process may have done something last: Ebb does not note what fork(2) and the end of a process attach and detach.
static void show_size(const char *name, int id)
{
    struct shmid_ds status = stat_of(id);
    check_line("%s: %zu bytes, %lu attached, mode %o\n", name, status.shm_segsz, (unsigned long)status.shm_nattch, status.shm_perm.mode);
}

// What /proc/self/maps calls what is mapped at an address.
static void show_map(const char *name, void *at, int id)
{
    char line[256], start[32], text[128] = "";
    unsigned long offset = 0, inode = 0;
    char rights[8] = "", device[16] = "";
    snprintf(start, sizeof start, "%lx-", (unsigned long)at);
    FILE *maps = fopen("/proc/self/maps", "r");
    REQUIRE(maps != NULL);
    while (fgets(line, sizeof line, maps))
        if (!strncmp(line, start, strlen(start)))
            sscanf(line, "%*s %7s %lx %15s %lu %127[^\n]", rights, &offset, device, &inode, text);
    fclose(maps);
    check_line("%s: %s offset %lx device %s inode of id %d %s\n", name, rights, offset, device, inode == (unsigned long)id, text);
}

static int listed(int id)
{
    char line[512];
    FILE *all = fopen("/proc/sysvipc/shm", "r");
    REQUIRE(all != NULL);
    int found = 0, other;
    REQUIRE(fgets(line, sizeof line, all) != NULL);
    while (fgets(line, sizeof line, all))
        found += sscanf(line, "%*d %d", &other) == 1 && other == id;
    fclose(all);
    return found;
}

int main(void)
{
    own_objects();
    char line[512];
    FILE *all = fopen("/proc/sysvipc/shm", "r");
    REQUIRE(all && fgets(line, sizeof line, all));
    check_line("header: %s", line);
    fclose(all);

    int id = shmget(IPC_PRIVATE, 3 * PAGE - 5, IPC_CREAT | 0640);
    REQUIRE(id >= 0);
    show("new", id);
    CHECK("listed", listed(id));
    char *a = shmat(id, NULL, 0);
    REQUIRE(a != (void *)-1);
    show("attached", id);
    show_map("map", a, id);
    CHECK("zero", a[0] + a[3 * PAGE - 6] + a[3 * PAGE - 1]);
    strcpy(a, "one");
    char *b = shmat(id, NULL, SHM_RDONLY);
    REQUIRE(b != (void *)-1);
    CHECK_STR("seen", b);
    show("twice", id);
    show_map("map-read-only", b, id);
    CHECK("mprotect-read-only", mprotect(b, PAGE, PROT_READ | PROT_WRITE));
    CHECK("mprotect-own", mprotect(a, 3 * PAGE, PROT_READ));
    CHECK("mprotect-back", mprotect(a, 3 * PAGE, PROT_READ | PROT_WRITE));
    CHECK_CHILD("child", show_size("inherited", id); strcpy(a, "two"); CHECK("detach", shmdt(a)); show("detached", id));
    CHECK_STR("of-child", b);
    show_size("after-child", id);
    // Somewhere else.
    CHECK("unaligned", (long)shmat(id, a + 100, 0) == -1 ? -1 : 0);
    CHECK_TRUE("occupied", shmat(id, a, 0) == (void *)-1 && errno == EINVAL);
    char *room = mmap(NULL, 8 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(room != MAP_FAILED);
    CHECK_TRUE("occupied-elsewhere", shmat(id, room, 0) == (void *)-1 && errno == EINVAL);
    CHECK_TRUE("replaced", shmat(id, room + PAGE, SHM_REMAP) == room + PAGE);
    CHECK_TRUE("replace-nothing", shmat(id, NULL, SHM_REMAP) == (void *)-1 && errno == EINVAL);
    CHECK_STR("there-too", room + PAGE);
    CHECK("detach-within", shmdt(room + 2 * PAGE));
    CHECK("unmap-part", munmap(room + 2 * PAGE, PAGE));
    show("in-two-parts", id);
    CHECK("detach-parts", shmdt(room + PAGE));
    show("parts-gone", id);
    CHECK_TRUE("rounded", shmat(id, room + 3 * PAGE + 77, SHM_RND | SHM_REMAP) == room + 3 * PAGE);
    CHECK("unmap-first", munmap(room + 3 * PAGE, PAGE));
    CHECK("detach-the-rest", shmdt(room + 3 * PAGE));
    CHECK("detach-again", shmdt(room + 3 * PAGE));
    CHECK("detach-unaligned", shmdt(a + 1));
    CHECK("detach-anonymous", shmdt(room));
    // Bad ids, sizes and keys.
    CHECK("size-zero", shmget(IPC_PRIVATE, 0, 0600));
    CHECK("bad-id", shmctl(-1, IPC_STAT, NULL));
    CHECK("bad-command", shmctl(id, 99, NULL));
    CHECK("bad-pointer", syscall(SYS_shmctl, id, IPC_STAT, BAD_POINTER));
    CHECK_TRUE("no-such", shmat(0x7fffffff, NULL, 0) == (void *)-1 && errno == EINVAL);
    key_t key = 0x45626200 + (getpid() & 0xff);
    CHECK("no-key", shmget(key, PAGE, 0));
    int keyed = shmget(key, PAGE, IPC_CREAT | IPC_EXCL | 0600);
    REQUIRE(keyed >= 0);
    CHECK("exists", shmget(key, PAGE, IPC_CREAT | IPC_EXCL));
    CHECK_TRUE("same", shmget(key, 0, 0) == keyed && shmget(key, PAGE, IPC_CREAT | 0600) == keyed);
    CHECK("too-large", shmget(key, PAGE + 1, 0));
    CHECK_TRUE("key", stat_of(keyed).shm_perm.__key == key);
    // Others.
    CHECK_CHILD("foreign", REQUIRE(setgid(1000) == 0 && setuid(1000) == 0); CHECK("find", shmget(key, PAGE, 0) == keyed);
                CHECK("find-to-read", shmget(key, PAGE, 0444)); CHECK("find-larger", shmget(key, PAGE + 1, 0444)); CHECK_TRUE("attach", shmat(keyed, NULL, SHM_RDONLY) == (void *)-1 && errno == EACCES);
                struct shmid_ds status; CHECK("stat", shmctl(keyed, IPC_STAT, &status)); CHECK("set", shmctl(id, IPC_SET, &status));
                CHECK("remove", shmctl(keyed, IPC_RMID, NULL)); CHECK("lock", shmctl(keyed, SHM_LOCK, NULL)));
    struct shmid_ds status = stat_of(keyed);
    status.shm_perm.uid = 1000;
    status.shm_perm.mode = 0777;
    CHECK("give-away", shmctl(keyed, IPC_SET, &status));
    show("given", keyed);
    CHECK_CHILD("owner", REQUIRE(setgid(1000) == 0 && setuid(1000) == 0); CHECK_TRUE("attach", shmat(keyed, NULL, SHM_EXEC) != (void *)-1);
                CHECK("remove", shmctl(keyed, IPC_RMID, NULL)));
    CHECK("removed", shmctl(keyed, IPC_STAT, &status));
    CHECK("no-key-again", shmget(key, PAGE, 0));
    CHECK("lock", shmctl(id, SHM_LOCK, NULL));
    show_size("locked", id);
    CHECK("unlock", shmctl(id, SHM_UNLOCK, NULL));
    // It stays until nobody has it attached.
    CHECK("remove", shmctl(id, IPC_RMID, NULL));
    CHECK("remove-again", shmctl(id, IPC_RMID, NULL));
    show_size("to-go", id);
    CHECK("listed-still", listed(id));
    char *c = shmat(id, NULL, 0);
    CHECK_STR("attach-what-goes", c);
    CHECK_TRUE("key-is-gone", stat_of(id).shm_perm.__key == IPC_PRIVATE);
    CHECK("detach-a", shmdt(a));
    CHECK("detach-b", shmdt(b));
    show("one-left", id);
    CHECK("detach-c", shmdt(c));
    CHECK("gone", shmctl(id, IPC_STAT, &status));
    CHECK("not-listed", listed(id));
    // What a process had attached is detached when it has been waited for.
    id = shmget(IPC_PRIVATE, PAGE, 0600);
    CHECK_CHILD("attaches", CHECK_TRUE("attach", shmat(id, NULL, 0) != (void *)-1));
    show_size("after-exit", id);
    CHECK_CHILD("removes", CHECK_TRUE("attach", shmat(id, NULL, 0) != (void *)-1); CHECK("remove", shmctl(id, IPC_RMID, NULL)));
    CHECK("gone-after-exit", shmctl(id, IPC_STAT, &status));
    // Cut into many VMAs, with others between them, all go at once; what has become longer than the segment stays.
    id = shmget(IPC_PRIVATE, 64 * PAGE, 0600);
    char *many = shmat(id, NULL, 0);
    for (int page = 1; page < 64; page += 2)
        REQUIRE(mprotect(many + page * PAGE, PAGE, PROT_READ) == 0);
    REQUIRE(mmap(many + 4 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
    show_size("in-pieces", id);
    CHECK("detach-pieces", shmdt(many));
    show_size("detached", id);
    CHECK_TRUE("anonymous-stays", *(many + 4 * PAGE) == 0);
    char *space = mmap(NULL, 8 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(munmap(space, 8 * PAGE) == 0);
    int two = shmget(IPC_PRIVATE, 2 * PAGE, 0600);
    REQUIRE(shmat(two, space, 0) == space && mprotect(space, PAGE, PROT_READ) == 0);
    REQUIRE(mremap(space + PAGE, PAGE, 3 * PAGE, 0) == space + PAGE);
    CHECK("detach-grown", shmdt(space));
    show_size("grown-stays", two);
    CHECK_TRUE("unmap-grown", munmap(space, 4 * PAGE) == 0);
    show_size("none", two);
    CHECK_TRUE("end-of-memory", shmat(id, (void *)~0ul, SHM_RND) == (void *)-1 && errno == EINVAL);
    // The group that counts is the one for files.
    REQUIRE(shmctl(two, IPC_STAT, &status) == 0);
    status.shm_perm.gid = 1234;
    status.shm_perm.mode = 0660;
    REQUIRE(shmctl(two, IPC_SET, &status) == 0);
    CHECK_CHILD("group", REQUIRE(setgroups(0, NULL) == 0); setfsgid(1234); REQUIRE(seteuid(1000) == 0);
                CHECK_TRUE("attach", shmat(two, NULL, 0) != (void *)-1));
    CHECK("remove-both", shmctl(id, IPC_RMID, NULL) | shmctl(two, IPC_RMID, NULL));
    struct shminfo limits;
    REQUIRE(shmctl(0, IPC_INFO, (void *)&limits) >= 0);
    check_line("limits: least %lu most %lu\n", limits.shmmin, limits.shmmni);
    return 0;
}
