// Cyclone has exceptions in the place of setjmp and longjmp, which would jump out of regions without closing them.

#ifndef _SETJMP_H_
#define _SETJMP_H_
__noinference__ {
#error "setjmp.h: Cyclone has no setjmp; use try, catch and throw"

}
#endif
