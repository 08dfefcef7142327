// The vDSO's functions, found by hand as libraries do.
#ifndef EBB_VDSO_H
#define EBB_VDSO_H
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

// Where its ELF header is; NULL if there is none.
static inline const char *vdso_base(void)
{
    const char *base = (const char *)getauxval(AT_SYSINFO_EHDR);
    return base && memcmp(base, ELFMAG, SELFMAG) == 0 ? base : NULL;
}

// Looks a symbol up through the headers alone, with the version that it must have.
static inline void *vdso_find(const char *wanted)
{
    const char *base = vdso_base();
    if (!base)
        return NULL;
    const Elf64_Ehdr *header = (const void *)base;
    const Elf64_Phdr *segments = (const void *)(base + header->e_phoff);
    const Elf64_Dyn *dynamic = NULL;
    size_t bias = 0;
    for (int i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type == PT_LOAD)
            bias = (size_t)base + segments[i].p_offset - segments[i].p_vaddr;
        else if (segments[i].p_type == PT_DYNAMIC)
            dynamic = (const void *)(base + segments[i].p_offset);
    }
    const Elf64_Sym *symbols = NULL;
    const char *strings = NULL;
    const uint32_t *hash = NULL;
    const uint16_t *versions = NULL;
    const Elf64_Verdef *definitions = NULL;
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        const void *at = (const void *)(bias + dynamic->d_un.d_ptr);
        switch (dynamic->d_tag) {
        case DT_SYMTAB: symbols = at; break;
        case DT_STRTAB: strings = at; break;
        case DT_HASH: hash = at; break;
        case DT_VERSYM: versions = at; break;
        case DT_VERDEF: definitions = at; break;
        }
    }
    if (!symbols || !strings || !versions || !definitions)
        return NULL;
    // Newer ones of Linux's have only the other kind of table; theirs has as many symbols as lie before the strings.
    size_t count = hash ? hash[1] : ((const char *)strings - (const char *)symbols) / sizeof *symbols;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(strings + symbols[i].st_name, wanted) != 0 || symbols[i].st_shndx == SHN_UNDEF)
            continue;
        const Elf64_Verdef *version = definitions;
        while (version->vd_ndx != (versions[i] & 0x7fff) && version->vd_next)
            version = (const void *)((const char *)version + version->vd_next);
        const Elf64_Verdaux *name = (const void *)((const char *)version + version->vd_aux);
        if (strcmp(strings + name->vda_name, "LINUX_2.6") == 0)
            return (void *)(bias + symbols[i].st_value);
    }
    return NULL;
}
#endif
