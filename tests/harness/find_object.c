/*
 * find_object.c - _dl_find_object() for C libraries without it.
 *
 * The unwinder of gcc's runtime library (libgcc_eh) asks for the unwind tables of an address. As built for glibc 2.35 and
 * later, it asks by this function alone. Distributions that have musl beside glibc link musl's programs with that library
 * (musl-gcc). The build adds this file only if a program with an unwinder does not link without it.
 *
 * The struct is the one of glibc's <dlfcn.h>; the unwinder reads the tables' address.
 */
#include <link.h>
#include <stddef.h>
#include <stdint.h>

struct dl_find_object {
    unsigned long long flags;
    void *map_start;
    void *map_end;
    struct link_map *link_map;
    void *eh_frame;
    unsigned long long reserved[7];
};

int _dl_find_object(void *pc, struct dl_find_object *result);

struct search {
    uintptr_t pc;
    struct dl_find_object *result;
};

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct search *s = arg;
    uintptr_t start = 0, end = 0, tables = 0;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t low = (uintptr_t)(info->dlpi_addr + p->p_vaddr);
        if (p->p_type == PT_LOAD && s->pc >= low && s->pc - low < p->p_memsz) {
            start = low;
            end = low + (uintptr_t)p->p_memsz;
        }
        if (p->p_type == PT_GNU_EH_FRAME)
            tables = low;
    }
    if (start == end || tables == 0)
        return 0;
    *s->result = (struct dl_find_object){
        .map_start = (void *)start, .map_end = (void *)end, .eh_frame = (void *)tables};
    return 1;
}

/* 0: found. -1: there are no tables for this address. */
int _dl_find_object(void *pc, struct dl_find_object *result)
{
    struct search s = {(uintptr_t)pc, result};
    return dl_iterate_phdr(look_at, &s) == 1 ? 0 : -1;
}
