// The older name of dirent.h.

#include <dirent.h>
