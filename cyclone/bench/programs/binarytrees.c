// Binary trees are made, counted and freed: allocation. With SAME_ALLOCATION each tree lives in an arena of its own.
#include <stdio.h>
#include <stdlib.h>

struct tree {
    struct tree *left, *right;
};

#ifdef SAME_ALLOCATION
#include "arena.h"

static struct tree *make(struct arena *home, int depth)
{
    struct tree *left = NULL, *right = NULL;
    if (depth > 0) {
        left = make(home, depth - 1);
        right = make(home, depth - 1);
    }
    struct tree *tree = arena_allocate(home, sizeof(struct tree));
    tree->left = left;
    tree->right = right;
    return tree;
}
#else
static struct tree *make(int depth)
{
    struct tree *tree = malloc(sizeof(struct tree));
    tree->left = depth > 0 ? make(depth - 1) : NULL;
    tree->right = depth > 0 ? make(depth - 1) : NULL;
    return tree;
}

static void destroy(struct tree *tree)
{
    if (tree != NULL) {
        destroy(tree->left);
        destroy(tree->right);
        free(tree);
    }
}
#endif

static int count(const struct tree *tree)
{
    return tree == NULL ? 0 : 1 + count(tree->left) + count(tree->right);
}

// The number of nodes of a tree that is made for it and freed.
static int made_and_counted(int depth)
{
#ifdef SAME_ALLOCATION
    struct arena home = { 0 };
    int total = count(make(&home, depth));
    arena_free(&home);
#else
    struct tree *tree = make(depth);
    int total = count(tree);
    destroy(tree);
#endif
    return total;
}

int main(int argc, char **argv)
{
    int largest = argc == 2 ? atoi(argv[1]) : 10;
#ifdef SAME_ALLOCATION
    struct arena home = { 0 };
    struct tree *lasting = make(&home, largest);
#else
    struct tree *lasting = make(largest);
#endif
    for (int depth = 4; depth <= largest; depth += 4) {
        int rounds = 1 << (largest - depth + 4);
        int total = 0;
        for (int i = 0; i < rounds; i++)
            total += made_and_counted(depth);
        printf("%d trees of depth %d: %d\n", rounds, depth, total);
    }
    printf("the lasting tree of depth %d: %d\n", largest, count(lasting));
#ifdef SAME_ALLOCATION
    arena_free(&home);
#else
    destroy(lasting);
#endif
    return 0;
}
