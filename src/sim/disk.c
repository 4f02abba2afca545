/*
 * disk.c - the file system in memory. disk.h has its rules.
 *
 * An inode has two contents: `now`, which calls see, and `kept`, which survives. Changes since the last sync are in a log,
 * in order: bytes of an inode, its size, or a name of a directory. A sync makes the content of its inode kept and drops
 * its entries from the log. A crash starts from what is kept, and applies each entry of the log, or not, or in part.
 *
 * A rename is one entry with two names, so that it happens whole or not at all.
 *
 * After the crash every call fails: the process that made them is taken for dead. A recovery closes its descriptors.
 *
 * Everything is in one static struct of fixed size: a test that needs more gets -ENOSPC.
 */
#include <errno.h>

#include "base/check.h"
#include "sim/disk_inner.h"
#include "sim/kernel.h"

struct bz_disk bz_disk;

/* ---- texts ---- */

bool bz_disk_is_same(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

size_t bz_disk_length(const char *text)
{
    size_t length = 0;
    while (text[length] != '\0')
        length++;
    return length;
}

void bz_disk_text(char *to, const char *from, size_t room)
{
    size_t length = bz_disk_length(from);
    length = length < room ? length : room - 1;
    bz_sim_copy(to, from, length);
    to[length] = '\0';
}

const char *bz_disk_end_of_part(const char *path)
{
    while (*path != '\0' && *path != '/')
        path++;
    return path;
}

/* ---- crashes ---- */

/* Each call begins here: -EIO once the system has crashed. */
int bz_disk_begin(void)
{
    bz_disk.calls++;
    if (bz_disk.calls == bz_disk.crash_at)
        bz_disk.is_down = true;
    return bz_disk.is_down ? -EIO : 0;
}

void bz_disk_keep_bytes(struct bz_disk_state *s, size_t at, const char *from, size_t bytes)
{
    bz_sim_copy(s->bytes + at, from, bytes);
    if (s->size < at + bytes)
        s->size = at + bytes;
}

void bz_disk_keep_size(struct bz_disk_state *s, size_t size)
{
    if (size > s->size)
        bz_sim_zero(s->bytes + s->size, size - s->size);
    s->size = size;
}

struct bz_disk_name *bz_disk_find_name(struct bz_disk_state *s, const char *text)
{
    for (int i = 0; i < BZ_DISK_NAMES; i++)
        if (s->names[i].text[0] != '\0' && bz_disk_is_same(s->names[i].text, text))
            return &s->names[i];
    return NULL;
}

bool bz_disk_set_name(struct bz_disk_state *s, const char *text, int inode)
{
    struct bz_disk_name *n = bz_disk_find_name(s, text);
    for (int i = 0; n == NULL && i < BZ_DISK_NAMES; i++)
        if (s->names[i].text[0] == '\0')
            n = &s->names[i];
    if (n == NULL)
        return false;
    n->inode = inode;
    bz_disk_text(n->text, inode != BZ_DISK_NONE ? text : "", BZ_DISK_NAME_BYTES);
    return true;
}

/* A write survives by sectors. */
static void keep_sectors(const struct bz_disk_entry *e)
{
    struct bz_disk_state *s = &bz_disk.inode[e->inode].kept;
    for (size_t from = 0; from < e->bytes;) {
        size_t part = BZ_DISK_SECTOR - (e->at + from) % BZ_DISK_SECTOR;
        part = part < e->bytes - from ? part : e->bytes - from;
        if (bz_rng_below(&bz_disk.dice, 2) == 0) {
            if (s->size < e->at + from) /* a sector behind one that is lost */
                bz_disk_keep_size(s, e->at + from);
            bz_disk_keep_bytes(s, e->at + from, bz_disk.data + e->data + from, part);
        }
        from += part;
    }
}

static void keep(const struct bz_disk_entry *e, bool is_whole)
{
    if (e->what == BZ_CHANGE_BYTES && !is_whole)
        keep_sectors(e);
    else if (e->what == BZ_CHANGE_BYTES)
        bz_disk_keep_bytes(&bz_disk.inode[e->inode].kept, e->at, bz_disk.data + e->data, e->bytes);
    else if (e->what == BZ_CHANGE_SIZE)
        bz_disk_keep_size(&bz_disk.inode[e->inode].kept, e->at);
    for (int i = 0; e->what == BZ_CHANGE_NAME && i < 2; i++)
        if (e->dir[i] != BZ_DISK_NONE)
            (void)bz_disk_set_name(&bz_disk.inode[e->dir[i]].kept, e->text[i], e->to[i]);
}

/* Free inodes that no name leads to. */
static void collect(void)
{
    bool is_named[BZ_DISK_INODES] = {[BZ_DISK_ROOT] = true};
    for (int i = 0; i < BZ_DISK_INODES; i++)
        for (int n = 0; bz_disk.inode[i].is_used && n < BZ_DISK_NAMES; n++)
            if (bz_disk.inode[i].now.names[n].text[0] != '\0')
                is_named[bz_disk.inode[i].now.names[n].inode] = true;
    for (int i = 0; i < BZ_DISK_INODES; i++)
        bz_disk.inode[i].is_used &= is_named[i];
}

void bz_disk_recover(uint64_t seed)
{
    bz_rng_init(&bz_disk.dice, seed);
    for (unsigned i = 0; i < bz_disk.log_count; i++) {
        uint64_t fate = bz_rng_below(&bz_disk.dice, 4);
        if (fate != 0) /* lost */
            keep(&bz_disk.log[i], fate != 1);
    }
    for (int i = 0; i < BZ_DISK_INODES; i++)
        bz_disk.inode[i].now = bz_disk.inode[i].kept;
    collect();
    bz_sim_zero(bz_disk.file, sizeof bz_disk.file);
    bz_disk.log_count = 0;
    bz_disk.data_used = 0;
    bz_disk.crash_at = 0;
    bz_disk.is_down = false;
}

/* ---- the log ---- */

struct bz_disk_entry *bz_disk_log_next(void)
{
    BZ_CHECK(bz_disk.log_count < BZ_DISK_LOG, "the log of the simulated disk is full");
    struct bz_disk_entry *e = &bz_disk.log[bz_disk.log_count++];
    *e = (struct bz_disk_entry){.inode = BZ_DISK_NONE,
                                .dir = {BZ_DISK_NONE, BZ_DISK_NONE},
                                .to = {BZ_DISK_NONE, BZ_DISK_NONE}};
    return e;
}

void bz_disk_log_name(int dir, const char *text, int to, int dir2, const char *text2, int to2)
{
    struct bz_disk_entry *e = bz_disk_log_next();
    e->what = BZ_CHANGE_NAME;
    e->dir[0] = dir;
    e->to[0] = to;
    bz_disk_text(e->text[0], text, BZ_DISK_NAME_BYTES);
    e->dir[1] = dir2;
    e->to[1] = to2;
    if (dir2 != BZ_DISK_NONE)
        bz_disk_text(e->text[1], text2, BZ_DISK_NAME_BYTES);
}

bool bz_disk_is_of(const struct bz_disk_entry *e, int inode)
{
    if (e->what == BZ_CHANGE_NAME)
        return e->dir[0] == inode || e->dir[1] == inode;
    return e->inode == inode;
}

void bz_disk_log_sync(int inode)
{
    unsigned left = 0;
    for (unsigned i = 0; i < bz_disk.log_count; i++) {
        if (bz_disk_is_of(&bz_disk.log[i], inode))
            keep(&bz_disk.log[i], true);
        else
            bz_sim_copy(&bz_disk.log[left++], &bz_disk.log[i], sizeof bz_disk.log[i]);
    }
    bz_disk.log_count = left;
}

/* ---- the whole ---- */

void bz_disk_open(const struct bz_disk_config *config)
{
    bz_sim_zero(&bz_disk, sizeof bz_disk);
    if (config != NULL)
        bz_disk.config = *config;
    bz_rng_init(&bz_disk.dice, bz_disk.config.short_seed);
    bz_disk.inode[BZ_DISK_ROOT].is_used = bz_disk.inode[BZ_DISK_ROOT].is_dir = true;
    bz_disk.inode[BZ_DISK_ROOT].mode = 0755;
    bz_fsys = &bz_disk_table;
}

unsigned bz_disk_close(void)
{
    unsigned left = 0;
    for (int i = 0; i < BZ_DISK_FDS; i++)
        left += bz_disk.file[i].is_used;
    bz_fsys = &bz_fsys_system;
    return left;
}

void bz_disk_crash_in(uint64_t n)
{
    bz_disk.crash_at = bz_disk.calls + n;
}

uint64_t bz_disk_calls(void)
{
    return bz_disk.calls;
}

bool bz_disk_has_crashed(void)
{
    return bz_disk.is_down;
}
