// assert: ends the program with status 255 where the condition does not hold, after naming it with its file and line. May
// be included again with another NDEBUG.

#undef assert
#ifdef NDEBUG
#define assert(test) (0)
#else
#include <core.h>
#ifndef _ASSERT_H_
#define _ASSERT_H_
extern `a __assert_fail(string_t assertion, string_t file, unsigned int line) __attribute__((noreturn));
#endif
#ifndef __STRING
#define __STRING(text) #text
#define __FILE2__ __FILE__
#endif
#define assert(test) ((test) ? 0 : (__assert_fail(__STRING(test), __FILE2__, __LINE__)))
#endif
