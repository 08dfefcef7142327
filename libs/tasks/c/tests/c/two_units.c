/* Two files with tasks in one program. */
#include "two_units.h"
#include "check.h"

int main(void)
{
    int first = 0, second = 0;
    LCD_MAIN({
        DO_FINISH({
            ASYNC({
                THCYield();
                first = counted(3);
            });
            ASYNC({
                THCYield();
                second = other_unit(5);
            });
        });
    });
    CHECK(first == 3 && second == 50);
    return 0;
}
