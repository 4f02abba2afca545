/*
 * fs.h - files: user-space instructions of one operation on a cached file.
 */
#ifndef BENCH_BUDGET_FS_H
#define BENCH_BUDGET_FS_H

#include "budget/budget.h"

enum { FS_PAGE = 4096, FS_PAGES = 16 };

/* A file without a name. */
static blitz_file *fs_file(void)
{
    static char page[FS_PAGE];
    const char *base = getenv("TMPDIR");
    char prefix[256];
    blitz_file *f;
    snprintf(prefix, sizeof prefix, "%s/budget-", base != NULL ? base : "/tmp");
    must(blitz_fs_temp_file(NULL, prefix, NULL, 0, &f, BLITZ_FOREVER), "temporary file");
    for (uint64_t i = 0; i < FS_PAGES; i++)
        must(blitz_file_write_at(f, page, FS_PAGE, i * FS_PAGE, BLITZ_FOREVER), "write");
    must(blitz_file_sync(f, BLITZ_FOREVER),
         "sync"); /* else the disk may begin with these pages meanwhile */
    return f;
}

static void file_read(uint64_t rounds)
{
    static char page[FS_PAGE];
    blitz_file *f = fs_file();
    for (; rounds > 0; rounds--)
        must(blitz_file_read_at(f, page, FS_PAGE, rounds % FS_PAGES * FS_PAGE, BLITZ_FOREVER),
             "read");
    blitz_file_close(f);
}

static void file_write(uint64_t rounds)
{
    static char page[FS_PAGE];
    blitz_file *f = fs_file();
    for (; rounds > 0; rounds--)
        must(blitz_file_write_at(f, page, FS_PAGE, rounds % FS_PAGES * FS_PAGE, BLITZ_FOREVER),
             "write");
    blitz_file_close(f);
}

static void file_stat(uint64_t rounds)
{
    blitz_file *f = fs_file();
    blitz_file_facts facts;
    for (; rounds > 0; rounds--)
        must(blitz_file_stat(f, &facts, BLITZ_FOREVER), "stat");
    blitz_file_close(f);
}

#define BUDGET_FS                                                         \
    {"file read, cached", file_read}, {"file write, cached", file_write}, \
    {                                                                     \
        "file stat", file_stat                                            \
    }

#endif
