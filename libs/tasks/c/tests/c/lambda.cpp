// Tasks as lambdas, and exceptions that leave them.
#include "check.h"
#include <ac.h>
#include <memory>
#include <stdexcept>
#include <string>

static std::string order;

static void figure()
{
    DO_FINISH({
        ASYNC({
            order += "A";
            THCYield();
            order += "D";
        });
        order += "B";
        ASYNC({
            order += "C";
            THCYield();
            order += "F";
        });
        order += "E";
    });
    order += "G";
}

static int destroyed;
struct counted {
    ~counted() { destroyed++; }
};

static void first_exception_comes_out()
{
    bool others_ended = false;
    std::string what;
    try {
        ac::finish([&](ac_finish *block) {
            ac::async(block, [&] {
                counted here;
                THCYield();
                throw std::runtime_error("first");
            });
            ac::async(block, [&] {
                THCYield();
                throw std::runtime_error("second");
            });
            ac::async(block, [&] {
                THCYield();
                THCYield();
                others_ended = true;
            });
        });
        CHECK(false);
    } catch (const std::runtime_error &error) {
        what = error.what();
    }
    CHECK(what == "first" && others_ended && destroyed == 1);
}

static void moved_captures()
{
    int sum = 0;
    ac::finish([&](ac_finish *block) {
        for (int i = 0; i < 10; i++) {
            auto mine = std::make_unique<int>(i);
            ac::async(block, [&sum, mine = std::move(mine)] {
                THCYield();
                sum += *mine;
            });
        }
    });
    CHECK(sum == 45);
}

// An exception on its way, while another task throws and catches its own.
static void exceptions_in_several_tasks()
{
    int caught = 0;
    DO_FINISH({
        for (int i = 0; i < 5; i++)
            ASYNC({
                int mine = i;
                try {
                    THCYield();
                    throw mine;
                } catch (int thrown) {
                    CHECK(thrown == mine);
                    caught++;
                }
                THCYield();
            });
    });
    CHECK(caught == 5);
}

int main()
{
    LCD_MAIN({
        figure();
        first_exception_comes_out();
        moved_captures();
        exceptions_in_several_tasks();
    });
    CHECK(order == "ABCEDFG");
    return 0;
}
