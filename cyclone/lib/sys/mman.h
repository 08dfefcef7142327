// Memory mappings. MAP_FIXED gives NULL. Unmapped pages stay reserved, so that a pointer left over faults instead of
// reaching a later mapping.

#ifndef _SYS_MMAN_H_
#define _SYS_MMAN_H_
__noinference__ {
#include <bits/types.h>

#define PROT_NONE 0
#define PROT_READ 1
#define PROT_WRITE 2
#define PROT_EXEC 4
#define MAP_SHARED 0x01
#define MAP_PRIVATE 0x02
#define MAP_FIXED 0x10
#define MAP_ANONYMOUS 0x20
#define MAP_ANON MAP_ANONYMOUS
#define MAP_NORESERVE 0x4000
#define MAP_FAILED NULL

extern char ? @nozeroterm mmap(char ? @nozeroterm, size_t length, int prot, int flags, int fd, off_t offset);
extern int munmap(const char ? @nozeroterm start, size_t length);

}
#endif
