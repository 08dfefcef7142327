// Heap sort of random numbers: array accesses with computed indices.
#include <stdio.h>
#include <stdlib.h>

static double uniform(double max)
{
    static long last = 42;
    last = (last * 3877 + 29573) % 139968;
    return max * (double)last / 139968;
}

static void sift_down(double *heap, int root, int last)
{
    double value = heap[root];
    for (;;) {
        int child = 2 * root + 1;
        if (child > last)
            break;
        if (child < last && heap[child] < heap[child + 1])
            child++;
        if (heap[child] <= value)
            break;
        heap[root] = heap[child];
        root = child;
    }
    heap[root] = value;
}

static void sort(double *numbers, int count)
{
    for (int root = count / 2 - 1; root >= 0; root--)
        sift_down(numbers, root, count - 1);
    for (int last = count - 1; last > 0; last--) {
        double largest = numbers[0];
        numbers[0] = numbers[last];
        numbers[last] = largest;
        sift_down(numbers, 0, last - 1);
    }
}

int main(int argc, char **argv)
{
    int count = argc == 2 ? atoi(argv[1]) : 1000;
    double *numbers = calloc((size_t)count, sizeof(double));
    for (int i = 0; i < count; i++)
        numbers[i] = uniform(1.0);
    sort(numbers, count);
    printf("%.10f\n", numbers[count - 1]);
    free(numbers);
    return 0;
}
