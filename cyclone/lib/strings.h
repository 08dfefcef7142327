// Comparison without regard to case, which string.h declares.

#include <string.h>
