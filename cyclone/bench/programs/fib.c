// The Fibonacci numbers by the doubly recursive definition: calls.
#include <stdio.h>
#include <stdlib.h>

static unsigned fib(unsigned n)
{
    return n < 2 ? 1 : fib(n - 2) + fib(n - 1);
}

// Not in main, of which gcc knows that it runs once: it unrolls the recursion otherwise there.
int show(unsigned n)
{
    return printf("%u\n", fib(n)) < 0;
}

int main(int argc, char **argv)
{
    return show(argc == 2 ? (unsigned)atoi(argv[1]) : 20);
}
