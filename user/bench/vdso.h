// The functions of the vDSO, without a C library that may or may not call them.
#pragma once
#include <elf.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/time.h>
#include <time.h>

// The function with that name; NULL if there is none.
static void *vdso_function(const char *name)
{
    const char *base = (const char *)getauxval(AT_SYSINFO_EHDR);
    if (!base)
        return NULL;
    const Elf64_Ehdr *header = (const void *)base;
    const Elf64_Phdr *segments = (const void *)(base + header->e_phoff);
    const Elf64_Dyn *dynamic = NULL;
    size_t bias = (size_t)base;
    for (int i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type == PT_LOAD)
            bias = (size_t)base + segments[i].p_offset - segments[i].p_vaddr;
        else if (segments[i].p_type == PT_DYNAMIC)
            dynamic = (const void *)(base + segments[i].p_offset);
    }
    const Elf64_Sym *symbols = NULL;
    const char *strings = NULL;
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag == DT_SYMTAB)
            symbols = (const void *)(bias + dynamic->d_un.d_ptr);
        else if (dynamic->d_tag == DT_STRTAB)
            strings = (const void *)(bias + dynamic->d_un.d_ptr);
    }
    // The strings follow the symbols.
    for (const Elf64_Sym *symbol = symbols; symbols && strings && (const char *)(symbol + 1) <= strings; symbol++)
        if (symbol->st_shndx != SHN_UNDEF && strcmp(strings + symbol->st_name, name) == 0)
            return (void *)(bias + symbol->st_value);
    return NULL;
}

// Each stays what it is, the system call, where there is no vDSO.
static int call_clock_gettime(clockid_t clock, struct timespec *time)
{
    return (int)call3(SYS_clock_gettime, clock, (long)time, 0);
}

static int call_gettimeofday(struct timeval *time, void *zone)
{
    return (int)call3(SYS_gettimeofday, (long)time, (long)zone, 0);
}

static time_t call_time(time_t *time)
{
    return call3(SYS_time, (long)time, 0, 0);
}

static int call_getcpu(unsigned *core, unsigned *node, void *unused)
{
    return (int)call3(SYS_getcpu, (long)core, (long)node, (long)unused);
}

static int (*vdso_clock_gettime)(clockid_t, struct timespec *) = call_clock_gettime;
static int (*vdso_gettimeofday)(struct timeval *, void *) = call_gettimeofday;
static time_t (*vdso_time)(time_t *) = call_time;
static int (*vdso_getcpu)(unsigned *, unsigned *, void *) = call_getcpu;

static void find_vdso(void)
{
    void *found;
    if ((found = vdso_function("__vdso_clock_gettime")))
        vdso_clock_gettime = (int (*)(clockid_t, struct timespec *))found;
    if ((found = vdso_function("__vdso_gettimeofday")))
        vdso_gettimeofday = (int (*)(struct timeval *, void *))found;
    if ((found = vdso_function("__vdso_time")))
        vdso_time = (time_t (*)(time_t *))found;
    if ((found = vdso_function("__vdso_getcpu")))
        vdso_getcpu = (int (*)(unsigned *, unsigned *, void *))found;
}
