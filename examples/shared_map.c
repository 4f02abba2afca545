/*
 * shared_map.c - tasks count words in one map.
 *
 * Each task has a part of the text and counts its words in a map that all of them share. A count is replaced if it is still
 * the one that was read; otherwise the task reads it again. So no update is lost, and no task holds a lock. Compare
 * word_count.c, where each worker has a table of its own and the tables are merged: that is faster for one computation. A
 * map is for counts that are read at any time, and by others.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <blitz.h>

enum { TASKS = 8, ROUNDS = 500 };

static const char text[] = "the map is shared by all tasks and each task adds its words to the map "
                           "while the others do the same";

static int count_word(blitz_map *counts, const char *word, size_t length)
{
    int old, next, rc;
    do {
        rc = blitz_map_get(counts, word, length, &old);
        next = rc == 0 ? old + 1 : 1;
        rc = rc == 0 ? blitz_map_swap(counts, word, length, &old, &next)
                     : blitz_map_add(counts, word, length, &next);
    } while (rc == -EAGAIN); /* another task was faster */
    return rc;
}

static int count_all(void *arg)
{
    for (int round = 0; round < ROUNDS; round++)
        for (const char *at = text; *at != '\0';) {
            size_t length = strcspn(at, " ");
            int rc = count_word(arg, at, length);
            if (rc != 0)
                return rc;
            at += length + (at[length] == ' ');
        }
    return 0;
}

/* Print the words that came more than once, and add up all counts. */
static int show(const void *word, size_t length, const void *value, void *total)
{
    int count = *(const int *)value;
    *(int *)total += count;
    if (count > TASKS * ROUNDS)
        printf("%6d %.*s\n", count, (int)length, (const char *)word);
    return 0;
}

static int run(void *arg)
{
    blitz_map *counts;
    blitz_task *t[TASKS];
    int total = 0, words = 1, failed = 0;
    (void)arg;
    if (blitz_map_new(sizeof(int), NULL, &counts) != 0)
        return 1;
    for (int i = 0; i < TASKS; i++)
        if (blitz_spawn(count_all, counts, NULL, &t[i]) != 0)
            return 1;
    for (int i = 0; i < TASKS; i++) {
        int result = 0;
        blitz_task_join(t[i], &result, BLITZ_FOREVER);
        failed |= result;
    }
    for (const char *at = text; *at != '\0'; at++)
        words += *at == ' ';
    if (failed != 0 || blitz_map_each(counts, show, &total) != 0)
        return 1;
    printf("%6d words, %zu of them different\n", total, blitz_map_len(counts));
    blitz_map_unref(counts);
    return total == words * TASKS * ROUNDS ? 0 : 1;
}

int main(void)
{
    return blitz_run(run, NULL, NULL);
}
