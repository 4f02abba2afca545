/*
 * symtab.c - see symtab.h.
 *
 * The loader knows only exported names, and the library exports only blitz_*: most frames of a
 * report would be a file and an offset. The file itself has a table of all names, unless it was
 * stripped. It is mapped, searched linearly, and unmapped: a process needs some hundred names for
 * reports. Everything in the file is checked before it is used, because it may have been replaced
 * since the process started.
 */
#define _GNU_SOURCE 1
#include "os/symtab.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
    const char *at;
    size_t bytes;
};

static bool map(struct file *f, const char *path)
{
    struct stat s;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    f->at = MAP_FAILED;
    if (fd < 0)
        return false;
    if (fstat(fd, &s) == 0 && s.st_size >= (off_t)sizeof(ElfW(Ehdr))) {
        f->bytes = (size_t)s.st_size;
        f->at = mmap(NULL, f->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    (void)close(fd);
    return f->at != MAP_FAILED;
}

/* Copy `bytes` from an offset, if the file is long enough. */
static bool copy(const struct file *f, uint64_t offset, void *out, size_t bytes)
{
    if (offset > f->bytes || bytes > f->bytes - offset)
        return false;
    memcpy(out, f->at + offset, bytes);
    return true;
}

static bool section(const struct file *f, const ElfW(Ehdr) * head, unsigned i, ElfW(Shdr) * out)
{
    return i < head->e_shnum && head->e_shentsize == sizeof *out &&
           copy(f, head->e_shoff + (uint64_t)i * sizeof *out, out, sizeof *out);
}

static bool is_elf_of_ours(const ElfW(Ehdr) * head)
{
    return memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 &&
           head->e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32);
}

static bool take_name(const struct file *f, const ElfW(Shdr) * names, uint32_t at, char *out,
                      size_t size)
{
    if (at >= names->sh_size || names->sh_offset + at >= f->bytes)
        return false;
    size_t room = f->bytes - (names->sh_offset + at);
    snprintf(out, size, "%.*s", room > 256 ? 256 : (int)room, f->at + names->sh_offset + at);
    return out[0] != '\0';
}

/* Find the function of the table that contains `address`. */
static bool search(const struct file *f, const ElfW(Shdr) * table, const ElfW(Shdr) * names,
                   uintptr_t address, char *name, size_t size, uintptr_t *from_start)
{
    ElfW(Sym) s;
    uint64_t count = table->sh_entsize == sizeof s ? table->sh_size / sizeof s : 0;
    for (uint64_t i = 0; i < count; i++) {
        if (!copy(f, table->sh_offset + i * sizeof s, &s, sizeof s))
            return false;
        if ((s.st_info & 0xf) != STT_FUNC || s.st_shndx == SHN_UNDEF || address < s.st_value ||
            address - s.st_value >= s.st_size)
            continue;
        *from_start = address - s.st_value;
        return take_name(f, names, s.st_name, name, size);
    }
    return false;
}

static bool find(const struct file *f, uintptr_t base, uintptr_t pc, char *name, size_t size,
                 uintptr_t *from_start)
{
    ElfW(Ehdr) head;
    ElfW(Shdr) table, names;
    if (!copy(f, 0, &head, sizeof head) || !is_elf_of_ours(&head))
        return false;
    uintptr_t address = head.e_type == ET_EXEC ? pc : pc - base;
    for (unsigned i = 0; section(f, &head, i, &table); i++)
        if (table.sh_type == SHT_SYMTAB && section(f, &head, table.sh_link, &names))
            return search(f, &table, &names, address, name, size, from_start);
    return false;
}

bool bz_symtab_find(const char *path, uintptr_t base, uintptr_t pc, char *name, size_t size,
                    uintptr_t *from_start)
{
    struct file f;
    if (!map(&f, path))
        return false;
    bool is_found = find(&f, base, pc, name, size, from_start);
    (void)munmap((void *)(uintptr_t)f.at, f.bytes);
    return is_found;
}
