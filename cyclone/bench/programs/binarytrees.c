// Binary trees are made, counted and freed: allocation.
#include <stdio.h>
#include <stdlib.h>

struct tree {
    struct tree *left, *right;
};

static struct tree *make(int depth)
{
    struct tree *tree = malloc(sizeof(struct tree));
    tree->left = depth > 0 ? make(depth - 1) : NULL;
    tree->right = depth > 0 ? make(depth - 1) : NULL;
    return tree;
}

static int count(const struct tree *tree)
{
    return tree == NULL ? 0 : 1 + count(tree->left) + count(tree->right);
}

static void destroy(struct tree *tree)
{
    if (tree != NULL) {
        destroy(tree->left);
        destroy(tree->right);
        free(tree);
    }
}

int main(int argc, char **argv)
{
    int largest = argc == 2 ? atoi(argv[1]) : 10;
    struct tree *lasting = make(largest);
    for (int depth = 4; depth <= largest; depth += 4) {
        int rounds = 1 << (largest - depth + 4);
        int total = 0;
        for (int i = 0; i < rounds; i++) {
            struct tree *tree = make(depth);
            total += count(tree);
            destroy(tree);
        }
        printf("%d trees of depth %d: %d\n", rounds, depth, total);
    }
    printf("the lasting tree of depth %d: %d\n", largest, count(lasting));
    destroy(lasting);
    return 0;
}
