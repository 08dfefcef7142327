// size_t and ssize_t: 64 bits.

#ifndef _BITS_SIZE_H_
#define _BITS_SIZE_H_
typedef unsigned long size_t;
typedef long ssize_t;
#endif
