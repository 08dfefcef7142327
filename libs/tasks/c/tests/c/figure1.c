/* The thesis's first figure: what is started runs until it blocks, then what comes after it goes on. */
#include "check.h"
#include <ac.h>
#include <string.h>

static char order[16];

static void say(const char *what)
{
    strcat(order, what);
}

int main(void)
{
    LCD_MAIN({
        DO_FINISH({
            ASYNC({
                say("A");
                THCYield();
                say("D");
            });
            say("B");
            ASYNC({
                say("C");
                THCYield();
                say("F");
            });
            say("E");
        });
        say("G");
    });
    CHECK(strcmp(order, "ABCEDFG") == 0);
    return 0;
}
