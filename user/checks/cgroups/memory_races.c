// The controller memory with many who take memory at the same time, end, move, and have their groups removed: limits hold, and in the end nothing is charged.
#include "../cgroup_memory.h"
#include <pthread.h>

enum { WORKERS = 6, ROUNDS = 25, LIMIT = 16 };

static const char *groups[] = { "a/b", "a/c", "a/b/d" };

static void join(const char *group)
{
    char file[64];
    snprintf(file, sizeof file, "%s/cgroup.procs", group);
    REQUIRE(strcmp(put(file, "0"), "ok") == 0);
}

static void *touch_in_thread(void *unused)
{
    munmap(touch(MIB), MIB);
    return unused;
}

// Takes about as much as there is, in one way or another. Some are ended for it.
static void work(unsigned seed)
{
    unsigned state = seed * 2654435761u + 1;
    for (int i = 0; i < 8; i++) {
        state = state * 1103515245 + 12345;
        size_t bytes = ((state >> 16) % 4 + 1) * MIB;
        switch ((state >> 8) % 5) {
        case 0:
            munmap(touch(bytes), bytes);
            break;
        case 1: {
            char *pages = touch(bytes);
            pid_t child = fork();
            if (child == 0) {
                for (size_t at = 0; at < bytes; at += PAGE)
                    pages[at]++;
                _exit(0);
            }
            int status;
            if (child > 0)
                waitpid(child, &status, 0);
            munmap(pages, bytes);
            break;
        }
        case 2: {
            static char block[65536];
            int file = memfd_create("file", 0);
            for (size_t at = 0; file >= 0 && at < bytes; at += sizeof block)
                if (write(file, block, sizeof block) <= 0)
                    break;
            close(file);
            break;
        }
        case 3: {
            pthread_t threads[3];
            int made = 0;
            while (made < 3 && pthread_create(&threads[made], NULL, touch_in_thread, NULL) == 0)
                made++;
            while (made > 0)
                pthread_join(threads[--made], NULL);
            break;
        }
        default:
            join(groups[(state >> 20) % 2 ? 1 : 2]);
        }
    }
}

int main(void)
{
    memory_begin();
    EXPECT("a", "ok", make("a"));
    EXPECT("a gives", "ok", put("a/cgroup.subtree_control", "+memory"));
    EXPECT("b", "ok", make("a/b"));
    EXPECT("c", "ok", make("a/c"));
    EXPECT("b gives", "ok", put("a/b/cgroup.subtree_control", "+memory"));
    EXPECT("d", "ok", make("a/b/d"));
    EXPECT("no swap", "ok", usable && has("a/memory.swap.max") ? put("a/memory.swap.max", "0") : "ok");
    EXPECT("limit", "ok", put("a/memory.max", "16M"));
    EXPECT("limit below", "ok", put("a/b/memory.max", "9M"));
    int too_much = 0, bad = 0;
    for (int round = 0; usable && round < ROUNDS; round++) {
        // One group comes and goes.
        REQUIRE(strcmp(make("a/e"), "ok") == 0);
        pid_t children[WORKERS];
        for (int i = 0; i < WORKERS; i++) {
            children[i] = check_fork();
            if (children[i] == 0) {
                join(i == 0 ? "a/e" : groups[i % 2 + 1]);
                work(round * WORKERS + i);
                _exit(0);
            }
        }
        if (round % 5 == 4)
            REQUIRE(strcmp(put("a/b/memory.max", round % 2 ? "6M" : "9M"), "ok") == 0);
        too_much += number_of("a/memory.current") > (LIMIT + 1) * MIB;
        for (int i = 0; i < WORKERS; i++) {
            int status;
            REQUIRE(waitpid(children[i], &status, 0) == children[i]);
            bad += !(WIFEXITED(status) && WEXITSTATUS(status) == 0) && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        }
        // Grandchildren whose parents were ended may be there for a moment.
        int tries = 0;
        while (strcmp(take("a/e"), "ok") != 0 && ++tries < 1000)
            check_sleep_ms(1);
        bad += tries == 1000;
    }
    EXPECT("never more than the limit", "0", too_much == 0 ? "0" : "some");
    EXPECT("ended well or for want of memory", "0", bad == 0 ? "0" : "some");
    EXPECT("some were ended", "yes", field("a/memory.events", "oom_kill") > 0 ? "yes" : "no");
    EXPECT_SOON("nothing is left in b", number_of("a/b/memory.current") < MIB);
    EXPECT_SOON("nor in c", number_of("a/c/memory.current") < MIB);
    EXPECT_SOON("nor above", number_of("a/memory.current") < MIB);
    // Linux keeps some pages, and objects of the kernel, for a while.
    EXPECT_SOON("not a byte on Ebb", !is_ebb() || number_of("a/memory.current") == 0);
    EXPECT_SOON("nor a table", !is_ebb() || field("a/memory.stat", "pagetables") == 0);
    EXPECT("remove d", "ok", take("a/b/d"));
    EXPECT("remove b", "ok", take("a/b"));
    EXPECT("remove c", "ok", take("a/c"));
    EXPECT("remove a", "ok", take("a"));
    cgroup_end();
    return 0;
}
