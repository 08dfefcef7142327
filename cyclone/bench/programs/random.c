// A linear congruential generator: floating point and remainders.
#include <stdio.h>
#include <stdlib.h>

static double uniform(double max)
{
    static long last = 42;
    last = (last * 3877 + 29573) % 139968;
    return max * (double)last / 139968;
}

int main(int argc, char **argv)
{
    int count = argc == 2 ? atoi(argv[1]) : 1;
    double result = 0;
    for (int i = 0; i < count; i++)
        result = uniform(100.0);
    printf("%.9f\n", result);
    return 0;
}
