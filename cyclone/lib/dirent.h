// Reading directories. An entry is a copy, which stays valid after the directory is closed; what is done with a closed
// directory throws Core::Failure.

#ifndef _DIRENT_H_
#define _DIRENT_H_
__noinference__ {
#include <bits/types.h>

#define NAME_MAX 255
struct dirent {
  ino_t d_ino;
  off_t d_off;
  unsigned short d_reclen;
  unsigned char d_type;
  char d_name[256];
};

extern struct __cycDIR;
typedef struct __cycDIR DIR;

extern DIR *opendir(const char @);
// NULL at the end.
extern struct dirent *readdir(DIR @);
extern int closedir(DIR @);
extern void rewinddir(DIR @);
extern void seekdir(DIR @, long);
extern long telldir(DIR @);

}
#endif
