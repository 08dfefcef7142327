// Conversions for printf and scanf of integers of chosen widths.

#ifndef _INTTYPES_H_
#define _INTTYPES_H_
__noinference__ {
#include <stdint.h>

#define PRId8 "d"
#define PRIi8 "i"
#define PRIo8 "o"
#define PRIx8 "x"
#define PRIX8 "X"
#define PRIu8 "u"
#define SCNd8 "hhd"
#define SCNi8 "hhi"
#define SCNo8 "hho"
#define SCNx8 "hhx"
#define SCNu8 "hhu"
#define PRId16 "d"
#define PRIi16 "i"
#define PRIo16 "o"
#define PRIx16 "x"
#define PRIX16 "X"
#define PRIu16 "u"
#define SCNd16 "hd"
#define SCNi16 "hi"
#define SCNo16 "ho"
#define SCNx16 "hx"
#define SCNu16 "hu"
#define PRId32 "d"
#define PRIi32 "i"
#define PRIo32 "o"
#define PRIx32 "x"
#define PRIX32 "X"
#define PRIu32 "u"
#define SCNd32 "d"
#define SCNi32 "i"
#define SCNo32 "o"
#define SCNx32 "x"
#define SCNu32 "u"
#define PRId64 "ld"
#define PRIi64 "li"
#define PRIo64 "lo"
#define PRIx64 "lx"
#define PRIX64 "lX"
#define PRIu64 "lu"
#define SCNd64 "ld"
#define SCNi64 "li"
#define SCNo64 "lo"
#define SCNx64 "lx"
#define SCNu64 "lu"
#define PRIdMAX "ld"
#define PRIdPTR "ld"
#define PRIiMAX "li"
#define PRIiPTR "li"
#define PRIoMAX "lo"
#define PRIoPTR "lo"
#define PRIxMAX "lx"
#define PRIxPTR "lx"
#define PRIXMAX "lX"
#define PRIXPTR "lX"
#define PRIuMAX "lu"
#define PRIuPTR "lu"

extern "C" intmax_t imaxabs(intmax_t);
extern "C" intmax_t strtoimax(char @`r, char @`r *, int);
extern "C" uintmax_t strtoumax(char @`r, char @`r *, int);

}
#endif
