#include "two_units.h"

int other_unit(int n)
{
    int tens = 0;
    DO_FINISH({
        ASYNC({
            THCYield();
            tens = 10 * counted(n);
        });
    });
    return tens;
}
