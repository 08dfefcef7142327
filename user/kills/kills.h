// What the parts of this program share: random numbers, kinds of objects, what processes outside of a group hold of them, and groups.
//
// A round makes a tree of groups, starts workloads in it, kills them at a random moment, and looks whether the kill took no longer than was charged for it
// and left nothing behind. All of it depends on the seed and the round only, on one core whose time is its instructions.
#pragma once
#define _GNU_SOURCE
#include "../bench/thread.h"
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#define PAGE 4096

// Random numbers: each process has its own sequence, which goes on in its children.
void seed_sequence(uint64_t seed, uint64_t round, uint64_t index);
uint32_t any(uint32_t below);
// Whether something happens that does so once in `many` times.
int once_in(uint32_t many);

// Tells of something that must never happen. The work goes on.
__attribute__((format(printf, 1, 2))) void violation(const char *format, ...);

// The same of something that came, but later than the end of the kill: other cores may still be at it, so with more than one that is only told.
__attribute__((format(printf, 1, 2))) void late(const char *format, ...);

void sleep_micros(long micros);

// A kind of objects that a workload holds.
struct kind {
    const char *name;
    // How many a workload has at most.
    int most;
    // Makes so many, or as many as the kernel allows.
    void (*make)(int amount);
};

// Each table ends with an entry without a name.
extern const struct kind memory_kinds[], file_kinds[], descriptor_kinds[], socket_kinds[], task_kinds[];

// What a workload does when it is killed; it does not return.
struct moment {
    const char *name;
    void (*go_on)(void);
};

extern const struct moment moments[];
extern const int moment_count;

// What all processes share.
struct board {
    // How many workloads have made what they wanted.
    volatile int ready;
    // The thread that holds each mutex of a list in shared memory, and its list of robust futexes; see `robust_shared`.
    struct robust {
        struct robust *next;
        volatile uint32_t word;
    } robust[2048];
    // How many of them are locked.
    volatile int robust_locked;
    // A set of semaphores at which processes outside wait.
    volatile int waited_for;
    // The process outside has done what it does before the kill.
    volatile int outside_ready;
    volatile int violations;
};

extern struct board *board;

// What processes in a group and one outside hold the ends of.
enum { MOST_LINKS = 24 };
enum link_kind { PIPE_TO_OUTSIDE, PIPE_FROM_OUTSIDE, STREAM, DATAGRAM, FIFO, TERMINAL, LINK_KINDS };

struct link {
    enum link_kind kind;
    int inside, outside;
};

extern struct link links[MOST_LINKS];
extern int link_count;

void make_links(int count);
// Closes the ends that are to be inside of the group.
void close_inside(void);
// Starts the process outside, which alone has the other ends from then on.
void start_checker(void);
// Has it look whether everything inside is gone, and waits for its end.
void finish_checker(void);

// A link of that kind, or -1.
int a_link_of(enum link_kind kind);

// A file with locks that processes in the group take: after the kill anybody gets them.
#define LOCKED_FILE "/tmp/locked"
// Where workloads make files, which stay if they are killed before they have unlinked them.
#define OWN "/tmp/own"
// A directory with so many files, called by numbers, that are watched.
#define WATCHED "/tmp/watched"
enum { MOST_WATCHED = 10000 };

// The groups of a round.
enum { DEEPEST_GROUP = 4, MOST_LEAVES = 3 };

struct tree {
    // Directories from the outermost inwards; the last one has the leaves in it, or is the only leaf.
    char chain[DEEPEST_GROUP][64];
    int depth;
    char leaf[MOST_LEAVES][80];
    int leaves;
};

#define CGROUPS "/cgroup"
// All rounds are below this one.
#define TOP CGROUPS "/kills"

void make_tree(struct tree *tree, long round);
void remove_tree(const struct tree *tree);
// Text of a file of a group; empty if there is none.
const char *group_text(const char *group, const char *file);
// The number behind a key, or the first one if `key` is empty; -1 if there is none.
long group_number(const char *group, const char *file, const char *key);
int write_group(const char *group, const char *file, const char *text);
// A child in the group, as fork(2).
pid_t fork_into(const char *group);
// Waits until nobody is in the group.
void await_empty(const char *group);
