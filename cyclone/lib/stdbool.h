// `bool` is `int` in Cyclone; core.h has it.

#ifndef _STDBOOL_H_
#define _STDBOOL_H_
__noinference__ {
#include <core.h>

#define __bool_true_false_are_defined 1

}
#endif
