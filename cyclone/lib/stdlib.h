// Numbers, processes, random numbers, sorting. `malloc` and `calloc` are keywords; `free` does nothing, since what it
// is given may still be reachable: the collector or the region's end takes it.

#ifndef _STDLIB_H_
#define _STDLIB_H_
__noinference__ {
#include <bits/size.h>
#include <bits/wait.h>
#include <bits/process.h>

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647
#define MB_CUR_MAX 1

#ifndef _wchar_t_def_
#define _wchar_t_def_
typedef int wchar_t;
#endif

typedef struct { int quot; int rem; } div_t;
typedef struct { long quot; long rem; } ldiv_t;
typedef struct { long long quot; long long rem; } lldiv_t;

extern "C" void _Exit(int);
extern "C" int atexit(void (@)(void));
extern int putenv(const char @);
extern int setenv(const char @, const char @, int);
extern "C" int unsetenv(const char @);
extern "C" int mkstemp(char @);
extern "C" int grantpt(int);
extern "C" int unlockpt(int);

extern "C" int atoi(const char @);
extern "C" long atol(const char @);
extern long long atoll(const char @);
extern "C" double strtod(char @`r, char @`r *);

extern "C" int abs(int);
extern "C" long labs(long);
extern "C" long long llabs(long long);
extern "C" div_t div(int, int);
extern "C" ldiv_t ldiv(long, long);
extern "C" lldiv_t lldiv(long long, long long);

extern "C" int rand(void);
extern "C" int rand_r(unsigned @);
extern "C" void srand(unsigned);
extern "C" long random(void);
extern "C" void srandom(unsigned);
extern "C" double drand48(void);
extern "C" double erand48(unsigned short @{3});
extern "C" long jrand48(unsigned short @{3});
extern "C" void lcong48(unsigned short @{7});
extern "C" long lrand48(void);
extern "C" long mrand48(void);
extern "C" long nrand48(unsigned short @{3});
extern "C" void srand48(long);

extern void free(`a::A ?);
extern void qsort(`a::A ?, size_t, tag_t<valueof_t(sizeof(`a))>, int (@)(const `a @, const `a @));

}
#endif
