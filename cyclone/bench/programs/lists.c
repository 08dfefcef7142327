// Queues of numbers as doubly linked lists: made, copied, moved, reversed, compared. With SAME_ALLOCATION all nodes of
// a round live in one arena.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define SIZE 10000

struct node {
    int value;
    struct node *next, *prev;
};

struct queue {
    struct node *first, *last;
    int length;
};

static void push_back(struct queue *queue, struct node *node)
{
    node->next = NULL;
    node->prev = queue->last;
    if (queue->last != NULL)
        queue->last->next = node;
    else
        queue->first = node;
    queue->last = node;
    queue->length++;
}

static struct node *pop_front(struct queue *queue)
{
    struct node *node = queue->first;
    if (node == NULL)
        return NULL;
    queue->first = node->next;
    if (queue->first != NULL)
        queue->first->prev = NULL;
    else
        queue->last = NULL;
    queue->length--;
    return node;
}

static struct node *pop_back(struct queue *queue)
{
    struct node *node = queue->last;
    if (node == NULL)
        return NULL;
    queue->last = node->prev;
    if (queue->last != NULL)
        queue->last->next = NULL;
    else
        queue->first = NULL;
    queue->length--;
    return node;
}

#ifdef SAME_ALLOCATION
#include "arena.h"

static void *allocate(struct arena *home, size_t bytes)
{
    return arena_allocate(home, bytes);
}
#else
struct arena {
    char unused;
};

static void *allocate(struct arena *home, size_t bytes)
{
    (void)home;
    return malloc(bytes);
}
#endif

static struct queue *new_queue(struct arena *home)
{
    struct queue *queue = allocate(home, sizeof(struct queue));
    queue->first = NULL;
    queue->last = NULL;
    queue->length = 0;
    return queue;
}

static struct node *new_node(struct arena *home, int value)
{
    struct node *node = allocate(home, sizeof(struct node));
    node->value = value;
    node->next = NULL;
    node->prev = NULL;
    return node;
}

static void reverse(struct queue *queue)
{
    struct node *node = queue->first;
    while (node != NULL) {
        struct node *next = node->next;
        node->next = node->prev;
        node->prev = next;
        node = next;
    }
    struct node *first = queue->first;
    queue->first = queue->last;
    queue->last = first;
}

static bool equal(struct queue *a, struct queue *b)
{
    struct node *x = a->first, *y = b->first;
    while (x != NULL && y != NULL) {
        if (x->value != y->value)
            return false;
        x = x->next;
        y = y->next;
    }
    return x == NULL && y == NULL;
}

static int round_trip(void)
{
    struct arena home = { 0 };
    struct queue *numbers = new_queue(&home), *copy = new_queue(&home), *moved = new_queue(&home);
    for (int i = 1; i <= SIZE; i++)
        push_back(numbers, new_node(&home, i));
    for (struct node *node = numbers->first; node != NULL; node = node->next)
        push_back(copy, new_node(&home, node->value));
    struct node *node = pop_front(copy);
    while (node != NULL) {
        push_back(moved, node);
        node = pop_front(copy);
    }
    node = pop_back(moved);
    while (node != NULL) {
        push_back(copy, node);
        node = pop_back(moved);
    }
    reverse(numbers);
    int length = equal(numbers, copy) && numbers->first->value == SIZE ? numbers->length : 0;
#ifdef SAME_ALLOCATION
    arena_free(&home);
#else
    while ((node = pop_front(numbers)) != NULL)
        free(node);
    while ((node = pop_front(copy)) != NULL)
        free(node);
    free(numbers);
    free(copy);
    free(moved);
#endif
    return length;
}

int main(int argc, char **argv)
{
    int rounds = argc == 2 ? atoi(argv[1]) : 1;
    int length = 0;
    for (int i = 0; i < rounds; i++)
        length = round_trip();
    printf("%d\n", length);
    return 0;
}
