/*
 * csv_stats.c - count, smallest, largest, mean and deviation of every column of a table of numbers.
 *
 * A reduction over the bytes of the file, as in word_count.c: each chunk takes the lines that begin
 * in it. An accumulator holds the figures of every column; the means and squares of two parts are
 * combined by the formulas of Chan, Golub and LeVeque, which avoid the difference of two large
 * numbers. With `is_ordered` the order of combinations depends only on the size of the file: a
 * second run, or a run with more workers, gives the same result to the last digit. The sequential
 * version adds in another order, so the results are compared with some tolerance.
 *
 *     example_csv_stats [FILE]     comma-separated, names in the first line; default: a generated table
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "twin.h"

enum { COLUMNS_MAX = 16 };

struct column {
    uint64_t count; /* of the numeric fields */
    double mean, squares, least, most;
};

struct stats {
    struct column columns[COLUMNS_MAX];
};

struct file {
    const char *text; /* ends in '\0' */
    size_t bytes, body;
    size_t columns; /* of the first line */
    struct stats together, again, alone;
};

static void column_add(struct column *c, double x)
{
    double from_mean = x - c->mean;
    c->least = c->count == 0 || x < c->least ? x : c->least;
    c->most = c->count == 0 || x > c->most ? x : c->most;
    c->count++;
    c->mean += from_mean / (double)c->count;
    c->squares += from_mean * (x - c->mean);
}

static void column_combine(struct column *c, const struct column *right)
{
    if (right->count == 0)
        return;
    if (c->count == 0) {
        *c = *right;
        return;
    }
    double a = (double)c->count, b = (double)right->count, apart = right->mean - c->mean;
    c->count += right->count;
    c->mean += apart * b / (a + b);
    c->squares += right->squares + apart * apart * a * b / (a + b);
    c->least = right->least < c->least ? right->least : c->least;
    c->most = right->most > c->most ? right->most : c->most;
}

/* One line; returns where the next one begins. */
static const char *take_line(const struct file *f, struct stats *s, const char *at)
{
    for (size_t i = 0; *at != '\n' && *at != '\0'; i++) {
        char *end = NULL;
        at += strspn(at, " \t");
        if (*at == '\n')
            break; /* strtod would continue into the next line */
        double x = strtod(at, &end);
        if (end != at && i < f->columns && isfinite(x))
            column_add(&s->columns[i], x);
        at = end + strcspn(end, ",\n");
        at += *at == ',';
    }
    return at + (*at == '\n');
}

/* Process the lines that begin in [from, to), counted from the end of the first line. */
static void take_lines(const struct file *f, struct stats *s, size_t from, size_t to)
{
    const char *body = f->text + f->body, *at = body + from, *end = body + to;
    if (at[-1] != '\n') {
        at = memchr(at, '\n', (size_t)(end - at));
        if (at == NULL)
            return;
        at++;
    }
    while (at < end)
        at = take_line(f, s, at);
}

/* ---- the reduction ---- */

static void stats_init(void *acc, void *arg)
{
    (void)arg;
    *(struct stats *)acc = (struct stats){0};
}

static int stats_map(void *acc, size_t from, size_t to, void *arg)
{
    take_lines(arg, acc, from, to);
    return 0;
}

static void stats_combine(void *acc, const void *right, void *arg)
{
    struct stats *a = acc;
    const struct stats *b = right;
    (void)arg;
    for (int i = 0; i < COLUMNS_MAX; i++)
        column_combine(&a->columns[i], &b->columns[i]);
}

static int in_parallel(void *arg)
{
    static const blitz_reduction how = {sizeof(struct stats), stats_init, stats_map, stats_combine};
    blitz_par_opts opts = {.is_ordered = 1};
    struct file *f = arg;
    f->again = f->together;
    return blitz_reduce(f->bytes - f->body, &how, f, &f->together, &opts);
}

static int one_after_another(void *arg)
{
    struct file *f = arg;
    f->alone = (struct stats){0};
    take_lines(f, &f->alone, 0, f->bytes - f->body);
    return 0;
}

/* ---- the result ---- */

static int is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b)) + 1e-9;
}

static int is_alike(const struct column *a, const struct column *b)
{
    return a->count == b->count && is_near(a->mean, b->mean) && is_near(a->squares, b->squares) &&
           a->least == b->least && a->most == b->most;
}

/* To the last digit. */
static int is_same(const struct column *a, const struct column *b)
{
    return is_alike(a, b) && a->mean == b->mean && a->squares == b->squares;
}

static int compare(void *arg)
{
    struct file *f = arg;
    const char *name = f->text;
    int err = twin_race(one_after_another, in_parallel, f);
    if (err != 0)
        return fprintf(stderr, "csv_stats: error %d\n", -err), 1;
    printf("%-10s %10s %12s %12s %12s %12s\n", "", "count", "least", "most", "mean", "deviation");
    for (size_t i = 0; i < f->columns; i++) {
        const struct column *c = &f->together.columns[i];
        size_t length = strcspn(name, ",\n");
        printf("%-10.*s %10llu %12g %12g %12g %12g\n", (int)length, name,
               (unsigned long long)c->count, c->least, c->most, c->mean,
               c->count > 1 ? sqrt(c->squares / (double)(c->count - 1)) : 0.0);
        name += length + 1;
        if (!is_alike(c, &f->alone.columns[i]) || !is_same(c, &f->again.columns[i]))
            return fprintf(stderr, "csv_stats: column %zu differs\n", i), 1;
    }
    return 0;
}

/* ---- the file ---- */

static char *make_up(size_t lines, size_t *bytes)
{
    size_t room = 64 * (lines + 1), at = 0;
    char *text = malloc(room);
    uint64_t x = 88172645463325252u;
    if (text == NULL)
        return NULL;
    at += (size_t)snprintf(text, room, "height,weight,year,score\n");
    for (size_t i = 0; i < lines; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        at += (size_t)snprintf(text + at, room - at, "%.2f,%.1f,%d,%d\n",
                               1.4 + (double)(x % 7000) / 10000, 40 + (double)(x >> 20 & 1023) / 16,
                               1950 + (int)(x >> 40 & 63), (int)(x >> 50 & 127) - 20);
    }
    *bytes = at;
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
        if (text != NULL)
            text[*bytes] = '\0';
    }
    if (f != NULL)
        fclose(f);
    return text;
}

int main(int argc, char **argv)
{
    struct file f = {.columns = 1};
    char *text = argc > 1 ? read_all(argv[1], &f.bytes) : make_up(300000, &f.bytes);
    if (text == NULL)
        return fprintf(stderr, "usage: %s [FILE]\n", argv[0]), 2;
    f.text = text;
    f.body = strcspn(text, "\n") + 1;
    for (size_t i = 0; i + 1 < f.body; i++)
        f.columns += text[i] == ',';
    int err = 1;
    if (f.body >= f.bytes || f.columns > COLUMNS_MAX)
        fprintf(stderr, "csv_stats: no lines, or more than %d columns\n", COLUMNS_MAX);
    else
        err = blitz_run(compare, &f, NULL);
    free(text);
    return err != 0;
}
