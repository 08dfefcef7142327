/* The same in strict C, for any compiler: a task is a function and its argument. */
#include "check.h"
#include <ac.h>
#include <string.h>

static char order[16];

static void task(void *argument)
{
    const char *letters = argument;
    strncat(order, letters, 1);
    THCYield();
    strncat(order, letters + 1, 1);
}

static char first[] = "AD", second[] = "CF";

int main(void)
{
    LCD_MAIN({
        DO_FINISH({
            ac_async(_fb_info, task, first);
            strcat(order, "B");
            ac_async(_fb_info, task, second);
            strcat(order, "E");
        });
        strcat(order, "G");
    });
    CHECK(strcmp(order, "ABCEDFG") == 0);

    order[0] = 0;
    LCD_MAIN({
        ac_async_eager(_fb_info, task, first);
        strcat(order, "B");
        ac_async_eager(_fb_info, task, second);
        strcat(order, "E");
    });
    CHECK(strcmp(order, "ABCEDF") == 0);
    return 0;
}
