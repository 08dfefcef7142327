/* Both files have this function, with its tasks. */
#include <ac.h>

static inline int counted(int n)
{
    int done = 0;
    DO_FINISH({
        for (int i = 0; i < n; i++) {
            ASYNC({
                THCYield();
                done++;
            });
        }
    });
    return done;
}

int other_unit(int n);
