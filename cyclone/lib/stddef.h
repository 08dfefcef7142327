// Types of sizes and differences.

#ifndef _STDDEF_H_
#define _STDDEF_H_
__noinference__ {
#include <bits/size.h>

typedef long ptrdiff_t;
#ifndef _wchar_t_def_
#define _wchar_t_def_
typedef int wchar_t;
#endif

}
#endif
