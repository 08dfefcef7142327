// Six nested loops.
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int n = argc == 2 ? atoi(argv[1]) : 1;
    unsigned x = 0;
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++)
            for (int c = 0; c < n; c++)
                for (int d = 0; d < n; d++)
                    for (int e = 0; e < n; e++)
                        for (int f = 0; f < n; f++)
                            x = x * 31 + (unsigned)(a ^ f);
    printf("%u\n", x);
    return 0;
}
