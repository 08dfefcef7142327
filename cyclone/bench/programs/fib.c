// The Fibonacci numbers by the doubly recursive definition: calls.
#include <stdio.h>
#include <stdlib.h>

static unsigned fib(unsigned n)
{
    return n < 2 ? 1 : fib(n - 2) + fib(n - 1);
}

int main(int argc, char **argv)
{
    printf("%u\n", fib(argc == 2 ? (unsigned)atoi(argv[1]) : 20));
    return 0;
}
