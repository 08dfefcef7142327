// Cyclone functions with more arguments take them as a fat pointer; there is nothing to declare.

#ifndef _STDARG_H_
#define _STDARG_H_
__noinference__ {
#define __CYCLONE_STDARG__ 1

}
#endif
