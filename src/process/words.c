/*
 * words.c - see words.h. Each string is a block of its own, of its length and the final 0.
 */
#include "process/words.h"

#include <string.h>

#include "base/alloc.h"

static bool grow(struct bz_words *w)
{
    size_t room = w->room == 0 ? 8 : w->room * 2;
    char **at = bz_alloc(&bz_allocator_libc, room * sizeof *at, sizeof *at);
    if (at == NULL)
        return false;
    if (w->count > 0)
        memcpy(at, w->at, w->count * sizeof *at);
    bz_free(&bz_allocator_libc, w->at, w->room * sizeof *at);
    w->at = at;
    w->room = room;
    return true;
}

static bool push(struct bz_words *w, char *text)
{
    if (text == NULL)
        return false;
    if (w->count + 1 >= w->room && !grow(w)) {
        bz_free(&bz_allocator_libc, text, strlen(text) + 1);
        return false;
    }
    w->at[w->count++] = text;
    w->at[w->count] = NULL;
    return true;
}

bool bz_words_add(struct bz_words *w, const char *first)
{
    size_t bytes = strlen(first) + 1;
    char *text = bz_alloc(&bz_allocator_libc, bytes, 1);
    if (text != NULL)
        memcpy(text, first, bytes);
    return push(w, text);
}

bool bz_words_add_pair(struct bz_words *w, const char *first, char between, const char *second,
                       size_t first_bytes)
{
    size_t second_bytes = strlen(second) + 1;
    char *text = bz_alloc(&bz_allocator_libc, first_bytes + 1 + second_bytes, 1);
    if (text != NULL) {
        memcpy(text, first, first_bytes);
        text[first_bytes] = between;
        memcpy(text + first_bytes + 1, second, second_bytes);
    }
    return push(w, text);
}

void bz_words_remove(struct bz_words *w, size_t index)
{
    bz_free(&bz_allocator_libc, w->at[index], strlen(w->at[index]) + 1);
    w->at[index] = w->at[--w->count];
    w->at[w->count] = NULL;
}

void bz_words_drop(struct bz_words *w)
{
    while (w->count > 0)
        bz_words_remove(w, w->count - 1);
    bz_free(&bz_allocator_libc, w->at, w->room * sizeof *w->at);
    *w = (struct bz_words){0};
}
