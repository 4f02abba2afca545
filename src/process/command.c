/*
 * command.c - build a command.
 *
 * Every function keeps the first error in the command, and does nothing after one. So a program builds a command
 * without a check at each line, and cannot start a command that lacks an argument.
 */
#include "process/command.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"

static bool is_open(blitz_command *c, bool is_valid)
{
    if (c->error == 0 && !is_valid)
        c->error = -EINVAL;
    return c->error == 0;
}

static void had_memory(blitz_command *c, bool had)
{
    if (!had)
        c->error = -ENOMEM;
}

int blitz_command_new(const char *program, blitz_command **out)
{
    if (program == NULL || *program == '\0' || out == NULL)
        return -EINVAL;
    blitz_command *c = bz_alloc(&bz_allocator_libc, sizeof *c, _Alignof(blitz_command));
    if (c == NULL)
        return -ENOMEM;
    memset(c, 0, sizeof *c);
    if (!bz_words_add(&c->args, program)) {
        bz_free(&bz_allocator_libc, c, sizeof *c);
        return -ENOMEM;
    }
    *out = c;
    return 0;
}

void blitz_command_unref(blitz_command *c)
{
    if (c == NULL)
        return;
    bz_words_drop(&c->args);
    bz_words_drop(&c->env);
    bz_words_drop(&c->paths);
    bz_words_drop(&c->dir);
    bz_free(&bz_allocator_libc, c, sizeof *c);
}

void blitz_command_arg(blitz_command *c, const char *arg)
{
    if (is_open(c, arg != NULL))
        had_memory(c, bz_words_add(&c->args, arg));
}

void blitz_command_args(blitz_command *c, const char *const *args)
{
    for (size_t i = 0; is_open(c, args != NULL) && args[i] != NULL; i++)
        blitz_command_arg(c, args[i]);
}

/* ---- environment and directory ---- */

static bool is_name(const char *name)
{
    return name != NULL && *name != '\0' && strchr(name, '=') == NULL;
}

static void env_forget(blitz_command *c, const char *name)
{
    size_t bytes = strlen(name);
    for (size_t i = c->env.count; i-- > 0;)
        if (strncmp(c->env.at[i], name, bytes) == 0 &&
            (c->env.at[i][bytes] == '=' || c->env.at[i][bytes] == '\0'))
            bz_words_remove(&c->env, i);
}

void blitz_command_env(blitz_command *c, const char *name, const char *value)
{
    if (!is_open(c, is_name(name)))
        return;
    env_forget(c, name);
    had_memory(c, value == NULL ? bz_words_add(&c->env, name)
                                : bz_words_add_pair(&c->env, name, '=', value, strlen(name)));
}

void blitz_command_env_clear(blitz_command *c)
{
    bz_words_drop(&c->env);
    c->clears_env = true;
}

void blitz_command_dir(blitz_command *c, const char *path)
{
    if (!is_open(c, path != NULL && *path != '\0'))
        return;
    bz_words_drop(&c->dir);
    had_memory(c, bz_words_add(&c->dir, path));
}

/* ---- descriptors ---- */

/* The slot of a target; a new one if it has none. */
static struct bz_child_fd *slot_of(blitz_command *c, int target)
{
    for (unsigned i = 0; i < c->slot_count; i++)
        if (c->slots[i].target == target)
            return &c->slots[i];
    return c->slot_count < BZ_CHILD_FDS_MAX ? &c->slots[c->slot_count++] : NULL;
}

static void set_slot(blitz_command *c, struct bz_child_fd with, bool is_valid)
{
    if (!is_open(c, is_valid && with.target >= 0 && with.target < BLITZ_PROCESS_FD_MAX))
        return;
    struct bz_child_fd *slot = slot_of(c, with.target);
    if (is_open(c, slot != NULL))
        *slot = with;
}

void blitz_command_stdio(blitz_command *c, int target, blitz_stdio how)
{
    struct bz_child_fd slot = {.target = target, .kind = BZ_CHILD_FD_STDIO, .how = (uint8_t)how};
    set_slot(c, slot, how >= BLITZ_STDIO_INHERIT && how <= BLITZ_STDIO_FROM_CHILD);
}

void blitz_command_file(blitz_command *c, int target, const char *path, unsigned how)
{
    struct bz_child_fd slot = {
        .target = target, .kind = BZ_CHILD_FD_FILE, .how = (uint8_t)how, .path = c->paths.count};
    if (!is_open(c, path != NULL && how >= BLITZ_FILE_READ && how <= BLITZ_FILE_APPEND && how != 3))
        return;
    had_memory(c, bz_words_add(&c->paths, path));
    set_slot(c, slot, true);
}

void blitz_command_fd(blitz_command *c, int target, blitz_fd fd)
{
    set_slot(c, (struct bz_child_fd){.target = target, .kind = BZ_CHILD_FD_FD, .fd = fd}, fd >= 0);
}

void blitz_command_same(blitz_command *c, int target, int as)
{
    set_slot(c, (struct bz_child_fd){.target = target, .kind = BZ_CHILD_FD_SAME, .fd = as},
             as >= 0 && as != target);
}

void blitz_command_pty(blitz_command *c, unsigned rows, unsigned columns)
{
    if (!is_open(c, rows > 0 && columns > 0 && rows <= UINT16_MAX && columns <= UINT16_MAX))
        return;
    c->has_pty = c->has_session = true;
    c->rows = rows;
    c->columns = columns;
}

/* ---- the rest ---- */

void blitz_command_group(blitz_command *c, int group)
{
    if (!is_open(c, group >= 0))
        return;
    c->has_group = true;
    c->group = group;
}

void blitz_command_session(blitz_command *c)
{
    c->has_session = true;
}

void blitz_command_limit(blitz_command *c, int resource, uint64_t soft, uint64_t hard)
{
    if (is_open(c, c->limit_count < BZ_LIMITS_MAX && soft <= hard))
        c->limits[c->limit_count++] = (struct bz_limit){resource, soft, hard};
}

void blitz_command_user(blitz_command *c, uint32_t uid, uint32_t gid)
{
    c->has_user = true;
    c->uid = uid;
    c->gid = gid;
}

void blitz_command_kill_on_unref(blitz_command *c)
{
    c->kills = true;
}
