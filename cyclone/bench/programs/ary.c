// Sums of two arrays, backwards and many times.
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int n = argc == 2 ? atoi(argv[1]) : 10;
    int *from = calloc((size_t)n, sizeof(int));
    int *to = calloc((size_t)n, sizeof(int));
    for (int i = 0; i < n; i++)
        from[i] = i + 1;
    for (int round = 0; round < 1000; round++)
        for (int i = n - 1; i >= 0; i--)
            to[i] += from[i];
    printf("%d %d\n", to[0], to[n - 1]);
    free(from);
    free(to);
    return 0;
}
