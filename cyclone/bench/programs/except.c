// Two kinds of exceptions pass through two handlers.
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

enum { LOW = 1, HIGH = 2 };

static jmp_buf *handler;
static int low, high;

static void raise_one(unsigned n)
{
    _longjmp(*handler, n & 1 ? LOW : HIGH);
}

static void inner(unsigned n)
{
    jmp_buf here, *outer = handler;
    handler = &here;
    int caught = _setjmp(here);
    if (caught == 0)
        raise_one(n);
    handler = outer;
    if (caught == LOW)
        low++;
    else
        _longjmp(*outer, caught);
}

static void middle(unsigned n)
{
    jmp_buf here, *outer = handler;
    handler = &here;
    int caught = _setjmp(here);
    if (caught == 0)
        inner(n);
    handler = outer;
    if (caught == HIGH)
        high++;
}

int main(int argc, char **argv)
{
    unsigned count = argc == 2 ? (unsigned)atoi(argv[1]) : 1;
    for (unsigned n = count; n > 0; n--)
        middle(n);
    printf("high %d low %d\n", high, low);
    return 0;
}
