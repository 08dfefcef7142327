// Ackermann's function: deep recursion.
#include <stdio.h>
#include <stdlib.h>

static int ackermann(int m, int n)
{
    if (m == 0)
        return n + 1;
    if (n == 0)
        return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

int main(int argc, char **argv)
{
    int n = argc == 2 ? atoi(argv[1]) : 1;
    printf("%d\n", ackermann(3, n));
    return 0;
}
