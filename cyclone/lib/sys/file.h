// The older name of fcntl.h.

#include <fcntl.h>
