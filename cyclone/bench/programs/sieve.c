// The primes up to 8192, many times: byte arrays of known size.
#include <stdio.h>
#include <stdlib.h>

#define LIMIT 8192

static char marks[LIMIT + 1];

int main(int argc, char **argv)
{
    int rounds = argc == 2 ? atoi(argv[1]) : 1;
    int count = 0;
    for (int round = 0; round < rounds; round++) {
        count = 0;
        for (int i = 2; i <= LIMIT; i++)
            marks[i] = 1;
        for (int i = 2; i <= LIMIT; i++)
            if (marks[i]) {
                count++;
                for (int k = i + i; k <= LIMIT; k += i)
                    marks[k] = 0;
            }
    }
    printf("%d\n", count);
    return 0;
}
