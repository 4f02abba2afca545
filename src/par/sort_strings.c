/*
 * sort_strings.c - strings in the order of strcmp.
 *
 * Comparing two strings means to fetch both from wherever they lie: that is what such a sort waits
 * for. So the first eight bytes of each are fetched once, and sorted with the pointer as a number
 * whose order is theirs; only strings that agree in them are looked at again. Without memory for that
 * the pointers are sorted by strcmp.
 *
 * T1  head: bytes from the highest down, 0 after the string's end. Its lowest byte is 0 exactly if the
 *     string ends within it; then strings with equal heads are equal.
 */
#include "par/sort.h"

#include <errno.h>
#include <string.h>

struct string {
    uint64_t head; /* T1 */
    char *text;
};

static inline int string_less(const struct string *a, const struct string *b)
{
    if (a->head != b->head)
        return a->head < b->head;
    return (a->head & 0xff) != 0 && strcmp(a->text + 8, b->text + 8) < 0;
}

static inline int text_less(char *const *a, char *const *b)
{
    return strcmp(*a, *b) < 0;
}

typedef char *string_text;
BLITZ_SORT_DEFINE(sort_strings, struct string, string_less)
BLITZ_SORT_DEFINE(sort_texts, string_text, text_less)

struct strings {
    char **v;
    size_t n, parts;
    struct string *strings;
};

static uint64_t head_of(const char *text)
{
    uint64_t head = 0;
    for (int i = 0; i < 8; i++) {
        head = head << 8 | (unsigned char)*text;
        text += *text != '\0';
    }
    return head;
}

static int take_part(size_t i, void *arg)
{
    const struct strings *s = arg;
    size_t end = bz_sort_part(s->n, s->parts, i + 1);
    for (size_t at = bz_sort_part(s->n, s->parts, i); at < end; at++)
        s->strings[at] = (struct string){head_of(s->v[at]), s->v[at]};
    return 0;
}

static int give_part(size_t i, void *arg)
{
    const struct strings *s = arg;
    size_t end = bz_sort_part(s->n, s->parts, i + 1);
    for (size_t at = bz_sort_part(s->n, s->parts, i); at < end; at++)
        s->v[at] = s->strings[at].text;
    return 0;
}

static int sort_with_memory(void *arg)
{
    struct strings *s = arg;
    const blitz_allocator *memory = bz_sort_allocator();
    s->parts = bz_sort_chunks(s->n);
    s->strings = bz_alloc(memory, s->n * sizeof *s->strings, 16);
    if (s->strings == NULL)
        return sort_texts(s->v, s->n);
    (void)!bz_sort_each(s->parts, take_part, s); /* both say 0 always */
    int err = sort_strings(s->strings, s->n);
    (void)!bz_sort_each(s->parts, give_part, s);
    bz_free(memory, s->strings, s->n * sizeof *s->strings);
    return err;
}

int blitz_sort_strings(char **v, size_t n)
{
    struct strings s = {v, n, 0, NULL};
    int err = bz_sort_check(v, n, sizeof(struct string));
    return err != 0 || n < 2 ? err : bz_sort_call(n, sort_with_memory, &s);
}
