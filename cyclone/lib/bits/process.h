// The end of the process, its environment, numbers in its arguments: the part of stdlib.h that string.h brings too.

#ifndef _BITS_PROCESS_H_
#define _BITS_PROCESS_H_
extern "C" void exit(int) __attribute__((noreturn));
extern "C" `a abort() __attribute__((noreturn));
extern "C" int system(const char @);
extern "C" char *getenv(const char @);
extern "C" double atof(const char @);
extern "C" long strtol(char @`r, char @`r *, int);
extern "C" unsigned long strtoul(char @`r, char @`r *, int);
#endif
