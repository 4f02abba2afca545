/* Names for reports: functions that the dynamic symbol table lacks have one, too. */
#include "harness.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/compiler.h"
#include "os/look.h"
#include "os/symtab.h"

static BZ_NOINLINE int not_exported(int n)
{
    return n * 3;
}

TEST(symtab, a_static_function_of_the_program_has_a_name)
{
    char text[256];
    volatile int n = not_exported(1);
    (void)n;
    CHECK(bz_look_symbol(text, sizeof text, (uintptr_t)not_exported + 1));
    t_watch("%s", text);
    CHECK(strncmp(text, "not_exported", 12) == 0);
    CHECK(strstr(text, "+0x1 (") != NULL);
}

TEST(symtab, a_hidden_function_of_the_library_has_a_name)
{
    char text[256];
    CHECK(bz_look_symbol(text, sizeof text, (uintptr_t)bz_look_symbol));
    CHECK(strncmp(text, "bz_look_symbol+0x0 (", 20) == 0);
}

/* A file may have been replaced since it was loaded: by anything. */
TEST(symtab, a_file_of_any_bytes_has_no_names)
{
    char path[] = "symtab-XXXXXX", name[16];
    uintptr_t from_start;
    int fd = mkstemp(path);
    CHECK_GE(fd, 0);
    for (uint64_t i = 0; i < t_scaled(300); i++) {
        unsigned char bytes[512];
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (unsigned char)t_random();
        if (i % 2 == 0)
            memcpy(bytes, "\177ELF\2\1\1", 7);
        if (i % 4 == 0) { /* a section table inside of the file: e_shoff, e_shentsize, e_shnum */
            memset(bytes + 40, 0, 8);
            bytes[41] = 1;
            bytes[58] = 64, bytes[59] = 0, bytes[60] = 4, bytes[61] = 0;
            bytes[256 + 4] = 2, bytes[256 + 5] = bytes[256 + 6] = bytes[256 + 7] = 0;
        }
        CHECK_EQ(pwrite(fd, bytes, sizeof bytes, 0), (ssize_t)sizeof bytes);
        (void)bz_symtab_find(path, 0, t_random() % 4096, name, sizeof name, &from_start);
    }
    CHECK(!bz_symtab_find("no/such/file", 0, 1, name, sizeof name, &from_start));
    close(fd);
    unlink(path);
}
