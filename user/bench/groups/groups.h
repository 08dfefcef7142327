// What it takes to end a workload that has made very many objects of one class.
//
// The workload is a program of its own (`--workload`), started in a cgroup or outside of any; it tells the rest through its board, a page that both map.
#pragma once
#define _GNU_SOURCE
#include "../gap.h"
#include <sys/mman.h>
#include <sys/wait.h>

#define PAGE 4096

struct class {
    const char *name;
    // What one object holds at most on any kernel, roughly: what would not fit into the machine is not begun.
    long bytes;
    // Makes what the objects need from outside of the group, such as files; may be NULL.
    void (*prepare)(long many);
    // Does once in the workload what is no object; may be NULL. Gives -errno where the kernel refuses it.
    long (*begin)(long many);
    // Makes one; gives -errno where the kernel refuses it.
    long (*make)(long index);
    // Waits until what was made is in its final state, such as blocked; may be NULL.
    void (*settle)(long made);
};

extern const struct class memory_classes[], descriptor_classes[], socket_classes[], file_classes[], task_classes[];

// The class of that name, or NULL.
const struct class *class_named(const char *name);

// What a workload says.
struct board {
    volatile int ready;
    // How many objects there are; fewer than wanted where the kernel refused one with `error`.
    long made;
    int error;
    // How long it took to make them.
    uint64_t created;
    // Tasks of the workload that have come to where they wait, or to their end.
    volatile int arrived;
    // What a process that touches memory found.
    uint64_t touched;
    struct gap gap;
};

extern struct board *board;

// How many objects the workload makes.
extern long many;

// Maps the board, which is a file.
void open_board(void);

// Makes the objects of a class, says so on the board, and waits for its end.
void run_workload(const char *class, const char *many);

// A directory with so many files, and a file for each thousand: names of what the workload opens.
void prepare_files(long many);
void prepare_file_of_thousand(long many);
// A name that ends in a number; it stands until the next call.
const char *numbered(const char *prefix, long number);
const char *file_name(long index);
const char *file_of_thousand(long index);

// Mounts cgroup2 with all controllers that matter and says which there are; without it, workloads are process groups.
void mount_groups(void);
int has_groups(void);

// How a workload is contained and ended.
enum mode {
    // A cgroup, ended through cgroup.kill and seen to be empty by poll(2).
    GROUP,
    // The same, seen by reading alone.
    GROUP_READ,
    // A process group outside of any cgroup, ended by SIGKILL.
    PROCESSES,
};

// A place for a workload.
struct place {
    enum mode mode;
    int directory, kill, events;
    pid_t leader;
};

void make_place(struct place *place, enum mode mode);

// Starts this program again in the place, with these arguments.
void start_in(struct place *place, char **arguments);

// Tells the kernel to end all that runs there.
void kill_place(struct place *place);

// Waits until nothing runs there.
void await_empty(struct place *place);

// What was charged for the last kill there and what it took, in nanoseconds; -1 where the kernel does not say.
void charged_last(struct place *place, long *charged, long *measured);

void remove_place(struct place *place);

// For process 1: ends all other processes and removes the group that was left.
void remove_whatever_runs(void);

// The machine's free memory in bytes.
long free_memory(void);
