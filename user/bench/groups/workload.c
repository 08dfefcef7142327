// The program that is to be ended.
#include "groups.h"

#define BOARD "/tmp/board"

struct board *board;
long many;

void open_board(void)
{
    int file = open(BOARD, O_RDWR | O_CREAT, 0644);
    must(file, "the board");
    must(ftruncate(file, PAGE), "the board");
    board = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (board == MAP_FAILED)
        fail("the board");
    close(file);
}

const struct class *class_named(const char *name)
{
    static const struct class *const tables[] = { memory_classes, descriptor_classes, socket_classes, file_classes, task_classes };
    for (size_t table = 0; table < sizeof tables / sizeof tables[0]; table++)
        for (const struct class *class = tables[table]; class->name; class++)
            if (strcmp(class->name, name) == 0)
                return class;
    return NULL;
}

void run_workload(const char *name, const char *count)
{
    const struct class *class = class_named(name);
    many = atol(count);
    long result = class->begin ? class->begin(many) : 0;
    long made = 0;
    uint64_t start = ticks();
    while (result >= 0 && made < many)
        if ((result = class->make(made)) >= 0)
            made++;
    board->created = ticks() - start;
    if (class->settle)
        class->settle(made);
    board->made = made;
    board->error = result < 0 ? (int)-result : 0;
    board->ready = 1;
    for (;;)
        pause();
}
