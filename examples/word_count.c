/*
 * word_count.c - count the occurrences of every word of a text.
 *
 * A reduction over the text's bytes whose accumulator is a table of words. A chunk may begin and
 * end in the middle of a word. So each chunk counts the words that *begin* in it, and reads on to
 * the end of its last word. So splits need no search for word borders. Two tables are combined by
 * adding the smaller to the larger: blitz_reduce combines neighbours only, but here the order does
 * not matter.
 *
 * `combine` frees the memory of its right accumulator: each one but the first is combined exactly
 * once. For the same reason errors are stored in the accumulator and do not stop the loop.
 *
 *     example_word_count [FILE]     default: a generated text of 8 MiB
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "twin.h"

struct word {
    const char *text; /* in the text itself; NULL: a free place */
    uint32_t length, hash;
    uint64_t count;
};

/* Open addressing; at most half full. */
struct table {
    struct word *places;
    size_t room, used; /* room is a power of two, or 0 */
    int err;
};

struct job {
    const char *text;
    size_t bytes;
    struct table together, alone;
};

static struct word *find(struct table *t, const struct word *w)
{
    size_t at = w->hash & (t->room - 1);
    while (t->places[at].text != NULL &&
           (t->places[at].hash != w->hash || t->places[at].length != w->length ||
            memcmp(t->places[at].text, w->text, w->length) != 0))
        at = (at + 1) & (t->room - 1);
    return &t->places[at];
}

static int grow(struct table *t)
{
    struct table larger = {.room = t->room == 0 ? 256 : 2 * t->room, .used = t->used};
    larger.places = calloc(larger.room, sizeof *larger.places);
    if (larger.places == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < t->room; i++)
        if (t->places[i].text != NULL)
            *find(&larger, &t->places[i]) = t->places[i];
    free(t->places);
    *t = larger;
    return 0;
}

static void add(struct table *t, const struct word *w)
{
    if (2 * t->used >= t->room && t->err == 0)
        t->err = grow(t);
    if (t->err != 0)
        return;
    struct word *at = find(t, w);
    if (at->text == NULL) {
        *at = *w;
        t->used++;
    } else {
        at->count += w->count;
    }
}

static int is_letter(char c)
{
    return isalpha((unsigned char)c) != 0;
}

/* Count the words that begin in [from, to). */
static void count_words(const struct job *j, struct table *t, size_t from, size_t to)
{
    size_t i = from;
    if (i > 0 && is_letter(j->text[i - 1]))
        while (i < to && is_letter(j->text[i]))
            i++; /* the rest of a word that began before */
    while (i < to) {
        struct word w = {.text = j->text + i, .hash = 2166136261u, .count = 1};
        while (i < j->bytes && is_letter(j->text[i]))
            w.hash = (w.hash ^ (unsigned char)j->text[i++]) * 16777619u;
        w.length = (uint32_t)(j->text + i - w.text);
        if (w.length > 0)
            add(t, &w);
        else
            i++;
    }
}

/* ---- the reduction ---- */

static void table_init(void *acc, void *arg)
{
    (void)arg;
    *(struct table *)acc = (struct table){0};
}

static int table_map(void *acc, size_t from, size_t to, void *arg)
{
    count_words(arg, acc, from, to);
    return 0;
}

static void table_combine(void *acc, const void *right, void *arg)
{
    struct table *large = acc, small = *(const struct table *)right;
    (void)arg;
    if (small.used > large->used) {
        struct table swap = *large;
        *large = small;
        small = swap;
    }
    if (large->err == 0)
        large->err = small.err;
    for (size_t i = 0; i < small.room; i++)
        if (small.places[i].text != NULL)
            add(large, &small.places[i]);
    free(small.places);
}

static int in_parallel(void *arg)
{
    static const blitz_reduction how = {sizeof(struct table), table_init, table_map, table_combine};
    struct job *j = arg;
    free(j->together.places);
    j->together = (struct table){0};
    int err = blitz_reduce(j->bytes, &how, j, &j->together, NULL);
    return err != 0 ? err : j->together.err;
}

static int one_after_another(void *arg)
{
    struct job *j = arg;
    free(j->alone.places);
    j->alone = (struct table){0};
    count_words(j, &j->alone, 0, j->bytes);
    return j->alone.err;
}

/* ---- the result ---- */

static int by_count(const void *a, const void *b)
{
    const struct word *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count) - (x->count > y->count)
                                : (x->hash > y->hash) - (x->hash < y->hash);
}

/* Does the other table say the same of every word of this one? */
static int is_same(const struct table *t, struct table *other)
{
    if (t->used != other->used)
        return 0;
    for (size_t i = 0; i < t->room; i++)
        if (t->places[i].text != NULL && find(other, &t->places[i])->count != t->places[i].count)
            return 0;
    return 1;
}

static int compare(void *arg)
{
    struct job *j = arg;
    int err = twin_race(one_after_another, in_parallel, j);
    if (err != 0 || !is_same(&j->together, &j->alone))
        return fprintf(stderr, "word_count: error %d, or other words\n", -err), 1;
    uint64_t words = 0;
    for (size_t i = 0; i < j->together.room; i++)
        words += j->together.places[i].text != NULL ? j->together.places[i].count : 0;
    printf("%llu words, %zu different ones, in %.1f MiB; most often:\n", (unsigned long long)words,
           j->together.used, (double)j->bytes / 1048576);
    qsort(j->together.places, j->together.room, sizeof *j->together.places, by_count);
    for (size_t i = 0; i < j->together.used && i < 5; i++)
        printf("%8llu %.*s\n", (unsigned long long)j->together.places[i].count,
               (int)j->together.places[i].length, j->together.places[i].text);
    return 0;
}

/* ---- the text ---- */

static char *make_up(size_t bytes)
{
    static const char *const parts[] = {"fork", "join", "the", "a", "and",
                                        "loop", "of",   "un",  "ed"};
    char *text = malloc(bytes + 1);
    uint64_t x = 88172645463325252u;
    for (size_t at = 0; text != NULL && at < bytes;) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        const char *part = parts[x % 9];
        for (; *part != '\0' && at < bytes; part++)
            text[at++] = *part;
        if (x >> 32 & 3 && at < bytes)
            text[at++] = ' ';
    }
    return text;
}

static char *read_all(const char *name, size_t *bytes)
{
    FILE *f = fopen(name, "rb");
    char *text = NULL;
    long size = -1;
    if (f != NULL && fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) >= 0) {
        rewind(f);
        text = malloc((size_t)size + 1);
        *bytes = text != NULL ? fread(text, 1, (size_t)size, f) : 0;
    }
    if (f != NULL)
        fclose(f);
    return text;
}

int main(int argc, char **argv)
{
    struct job j = {.bytes = 8 << 20};
    char *text = argc > 1 ? read_all(argv[1], &j.bytes) : make_up(j.bytes);
    if (text == NULL)
        return fprintf(stderr, "usage: %s [FILE]\n", argv[0]), 2;
    j.text = text;
    int err = blitz_run(compare, &j, NULL);
    free(j.together.places);
    free(j.alone.places);
    free(text);
    return err != 0;
}
