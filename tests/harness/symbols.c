/*
 * symbols.c - names for the addresses of a stack.
 *
 * backtrace_symbols() knows exported functions alone, and a test has none. So we read the symbol
 * tables of the mapped files, which name static functions as well and are in every build. If a file
 * has line numbers and addr2line is installed, we call that too.
 */
#include "record.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct frame {
    char path[256]; /* the file it is in */
    char name[128];
    char place[320];     /* file:line, if known */
    uintptr_t in_memory; /* the address */
    uintptr_t in_file;   /* ... as the file's tables have it */
    uintptr_t offset;    /* from the function's beginning */
    bool has_lines;
};

struct image {
    const char *at;
    size_t size;
    const ElfW(Ehdr) * header;
};

/* ---- which file ---- */

/* The file mapped at pc, and where in it that is. */
static bool frame_locate_in(struct frame *f, pid_t pid)
{
    char path[64], line[512];
    bool is_found = false;

    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    while (maps != NULL && !is_found && fgets(line, sizeof line, maps) != NULL) {
        unsigned long from, to, offset;
        f->path[0] = '\0';
        if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %255[^\n]", &from, &to, &offset, f->path) < 3)
            continue;
        is_found = f->in_memory >= from && f->in_memory < to;
        f->in_file = f->in_memory - from + offset; /* an offset in the file, as yet */
    }
    if (maps != NULL)
        fclose(maps);
    return is_found && f->path[0] == '/';
}

/* A process that has ended has no map any more; ours was its own when it was forked. */
static bool frame_locate(struct frame *f, pid_t pid)
{
    return frame_locate_in(f, pid) || frame_locate_in(f, getpid());
}

/* ---- symbol tables ---- */

static bool image_open(struct image *i, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd == -1)
        return false;
    i->at = MAP_FAILED;
    if (fstat(fd, &st) == 0 && (size_t)st.st_size > sizeof *i->header)
        i->at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (i->at == MAP_FAILED)
        return false;
    i->size = (size_t)st.st_size;
    i->header = (const void *)i->at;
    const unsigned char *id = i->header->e_ident;
    const ElfW(Ehdr) *h = i->header;
    if (memcmp(id, ELFMAG, SELFMAG) == 0 && h->e_shentsize == sizeof(ElfW(Shdr)) &&
        h->e_shoff + (size_t)h->e_shnum * sizeof(ElfW(Shdr)) <= i->size)
        return true;
    munmap((void *)i->at, i->size);
    return false;
}

/* From an offset in the file to the address its tables use. */
static uintptr_t image_address(const struct image *i, uintptr_t offset)
{
    const ElfW(Phdr) *segment = (const void *)(i->at + i->header->e_phoff);

    for (int n = 0; n < i->header->e_phnum; n++)
        if (segment[n].p_type == PT_LOAD && offset >= segment[n].p_offset &&
            offset < segment[n].p_offset + segment[n].p_filesz)
            return offset - segment[n].p_offset + segment[n].p_vaddr;
    return offset;
}

static bool search_table(const struct image *i, const ElfW(Shdr) * table, const ElfW(Shdr) * names,
                         struct frame *f)
{
    const ElfW(Sym) *symbol = (const void *)(i->at + table->sh_offset);
    size_t count = table->sh_size / sizeof *symbol;

    for (size_t n = 0; n < count; n++) {
        if ((symbol[n].st_info & 0xf) != STT_FUNC || f->in_file < symbol[n].st_value ||
            f->in_file - symbol[n].st_value >= symbol[n].st_size)
            continue;
        snprintf(f->name, sizeof f->name, "%s", i->at + names->sh_offset + symbol[n].st_name);
        f->offset = f->in_file - symbol[n].st_value;
        return true;
    }
    return false;
}

static void search_image(const struct image *i, struct frame *f)
{
    const ElfW(Shdr) *section = (const void *)(i->at + i->header->e_shoff);
    const char *section_names = i->at + section[i->header->e_shstrndx].sh_offset;

    for (int n = 0; n < i->header->e_shnum; n++) {
        if (strcmp(section_names + section[n].sh_name, ".debug_line") == 0)
            f->has_lines = true;
        if ((section[n].sh_type == SHT_SYMTAB || section[n].sh_type == SHT_DYNSYM) &&
            f->name[0] == '\0')
            search_table(i, &section[n], &section[section[n].sh_link], f);
    }
}

static void frame_name(struct frame *f, pid_t pid)
{
    struct image image;

    if (!frame_locate(f, pid) || !image_open(&image, f->path))
        return;
    f->in_file = image_address(&image, f->in_file);
    search_image(&image, f);
    munmap((void *)image.at, image.size);
}

/* ---- lines ---- */

static void take_lines(struct frame *frames, int count, const char *path, char *answer)
{
    char *rest = answer, *line;

    for (int i = 0; i < count; i++) {
        if (!frames[i].has_lines || strcmp(frames[i].path, path) != 0)
            continue;
        if ((line = strsep(&rest, "\n")) == NULL)
            return;
        line[strcspn(line, " ")] = '\0'; /* " (discriminator 3)" */
        if (line[0] != '?')
            snprintf(frames[i].place, sizeof frames[i].place, "%s", t_short_path(line));
        frames[i].has_lines = false; /* answered */
    }
}

/* One call for all frames that are in the same file as this one. */
static void ask_for_lines(struct frame *frames, int count, const struct frame *first)
{
    const char *argv[T_DEPTH_MAX + 4] = {"addr2line", "-e", first->path};
    char hex[T_DEPTH_MAX][24], path[sizeof first->path], *answer = NULL;
    int used = 3;
    size_t size = 0;

    snprintf(path, sizeof path, "%s", first->path);
    for (int i = 0; i < count; i++)
        if (frames[i].has_lines && strcmp(frames[i].path, path) == 0) {
            snprintf(hex[i], sizeof hex[i], "0x%lx", (unsigned long)frames[i].in_file);
            argv[used++] = hex[i];
        }
    FILE *out = open_memstream(&answer, &size);
    bool is_told = out != NULL && t_tool_run(out, argv, 20) == 0;
    if (out != NULL)
        fclose(out);
    take_lines(frames, count, path, is_told ? answer : (char[]){""});
    free(answer);
    for (int i = 0; i < count; i++)
        if (strcmp(frames[i].path, path) == 0)
            frames[i].has_lines = false;
}

/* ---- all of it ---- */

static void frame_print(FILE *out, const struct frame *f, const char *indent, int index)
{
    const char *file = strrchr(f->path, '/');

    fprintf(out, "%s#%-2d ", indent, index);
    if (f->name[0] != '\0')
        fprintf(out, "%s+0x%lx", f->name, (unsigned long)f->offset);
    else
        fprintf(out, "0x%lx", (unsigned long)f->in_memory);
    if (f->place[0] != '\0')
        fprintf(out, "   %s\n", f->place);
    else
        fprintf(out, "   (%s)\n", file != NULL ? file + 1 : "no file");
}

/* Frames below the case or the thread's function belong to the harness and are hidden. */
static bool is_bottom(const struct frame *f)
{
    return strcmp(f->name, "t_case_run") == 0 || strcmp(f->name, "t_thread_main") == 0 ||
           strcmp(f->name, "start_thread") == 0;
}

void t_stack_print(FILE *out, pid_t pid, const struct t_stack *s, const char *indent)
{
    struct frame *frames = calloc(T_DEPTH_MAX, sizeof *frames);
    int count = 0;

    for (; frames != NULL && count < s->depth && count < T_DEPTH_MAX; count++) {
        frames[count].in_memory = s->pc[count];
        frame_name(&frames[count], pid);
        if (is_bottom(&frames[count]))
            break;
    }
    for (int i = 0; i < count; i++)
        if (frames[i].has_lines)
            ask_for_lines(frames, count, &frames[i]);
    for (int i = 0, same; i < count; i += same) {
        frame_print(out, &frames[i], indent, i);
        for (same = 1; i + same < count && frames[i + same].in_memory == frames[i].in_memory;)
            same++;
        if (same > 1)
            fprintf(out, "%s    ... and %d more like it\n", indent, same - 1);
    }
    if (count == 0)
        fprintf(out, "%s(no stack)\n", indent);
    free(frames);
}
