/* Twelve tasks in turns, each with its own copy of the loop's variable; nested blocks; values in registers across suspensions. */
#include "check.h"
#include <ac.h>
#include <math.h>

static int trace[64], traced;

static void twelve(void)
{
    DO_FINISH({
        for (int i = 0; i < 12; i++) {
            ASYNC({
                int mine = i;
                trace[traced++] = mine;
                THCYield();
                trace[traced++] = 100 + mine;
            });
        }
    });
    CHECK(traced == 24);
    for (int i = 0; i < 12; i++) {
        CHECK(trace[i] == i);
        CHECK(trace[12 + i] == 100 + i);
    }
}

/* A block ends when all inside it has ended, at any depth. */
static int ended;

static void nested(int depth)
{
    DO_FINISH({
        for (int i = 0; i < 3; i++) {
            ASYNC({
                if (depth > 0)
                    nested(depth - 1);
                THCYield();
                ended++;
            });
        }
        ASYNC({
            /* Two deep, without a block of its own: the variables of both functions around it are seen. */
            int here = depth;
            ASYNC({
                THCYield();
                CHECK(here == depth);
                ended++;
            });
            THCYield();
            ended++;
        });
    });
}

/* `return` ends a task, and leaves a block only when its tasks have ended. */
static int returns(int *count)
{
    DO_FINISH({
        ASYNC({
            if (*count == 0) {
                THCYield();
                *count += 1;
                return;
            }
            CHECK(0);
        });
        return *count + 40;
    });
}

static double floating(double x)
{
    double sum = 0;
    DO_FINISH({
        for (int i = 0; i < 8; i++) {
            ASYNC({
                double mine = sqrt(x + i);
                double other = mine * 3;
                for (int k = 0; k < 3; k++) {
                    THCYield();
                    mine += other / 3;
                }
                sum += mine;
            });
        }
    });
    return sum;
}

/* A leaf function with variables below its stack pointer. */
__attribute__((noinline)) static int leaf(int a, int b)
{
    volatile int red[20];
    for (int i = 0; i < 20; i++)
        red[i] = a * i + b;
    THCYield();
    int sum = 0;
    for (int i = 0; i < 20; i++)
        sum += red[i];
    return sum;
}

static void noisy(void)
{
    int sums[4] = { 0 };
    DO_FINISH({
        for (int i = 0; i < 4; i++) {
            ASYNC({
                int mine = i;
                for (int k = 0; k < 5; k++)
                    sums[mine] += leaf(mine, k);
            });
        }
    });
    for (int i = 0; i < 4; i++)
        CHECK(sums[i] == 190 * i * 5 + 20 * 10);
}

int main(void)
{
    LCD_MAIN({
        twelve();
        nested(3);
        CHECK(ended == 5 + 3 * (5 + 3 * (5 + 3 * 5)));
        int count = 0;
        int before = returns(&count);
        CHECK(before == 40 && count == 1);
        double sum = 0;
        for (int i = 0; i < 8; i++)
            sum += 4 * sqrt(2.0 + i);
        CHECK(fabs(floating(2.0) - sum) < 1e-9);
        noisy();
    });
    return 0;
}
