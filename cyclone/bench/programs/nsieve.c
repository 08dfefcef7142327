// The primes up to some thousands times powers of two: byte arrays from the heap.
#include <stdio.h>
#include <stdlib.h>

static int primes_up_to(int limit)
{
    unsigned char *composite = calloc((size_t)limit + 1, 1);
    int count = 0;
    for (int i = 2; i <= limit; i++)
        if (!composite[i]) {
            count++;
            for (int k = i + i; k <= limit; k += i)
                composite[k] = 1;
        }
    free(composite);
    return count;
}

int main(int argc, char **argv)
{
    int n = argc == 2 ? atoi(argv[1]) : 2;
    for (int i = 0; i < 3; i++) {
        int limit = (1 << (n - i)) * 10000;
        printf("Primes up to %8d %8d\n", limit, primes_up_to(limit));
    }
    return 0;
}
