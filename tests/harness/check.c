/*
 * check.c - the checks, and their messages.
 *
 * A failing check may stand on a small foreign stack, so everything is composed in the record
 * itself and nothing big is a local variable. Only the thread that has claimed the record writes to
 * it.
 */
#include "record.h"

#include <ctype.h>
#include <stdarg.h>

struct text {
    char *at;
    size_t size, used;
};

static void text_add(struct text *t, const char *format, ...) T_PRINTF(2, 3);

static void text_add(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int more = vsnprintf(t->at + t->used, t->size - t->used, format, args);
    va_end(args);
    if (more > 0)
        t->used += (size_t)more;
    if (t->used >= t->size)
        t->used = t->size - 1;
}

static struct text detail(void)
{
    return (struct text){t_record->detail, sizeof t_record->detail, 0};
}

/* ---- numbers ---- */

static long double as_real(struct t_value v)
{
    return v.kind == T_DOUBLE ? (long double)v.d : v.kind == T_SIGNED ? v.s : (long double)v.u;
}

/* Both integers: -1, 0 or 1. */
static int order_of(struct t_value a, struct t_value b)
{
    bool a_negative = a.kind == T_SIGNED && a.s < 0, b_negative = b.kind == T_SIGNED && b.s < 0;

    if (a_negative != b_negative && !T_BROKEN(8))
        return a_negative ? -1 : 1;
    return a.u < b.u ? -1 : a.u > b.u; /* two's complement: right for two negatives as well */
}

bool t_holds_mixed(enum t_op op, struct t_value a, struct t_value b)
{
    bool less, same;

    if (a.kind == T_DOUBLE || b.kind == T_DOUBLE) {
        long double x = as_real(a), y = as_real(b);
        bool is_ordered = x == x && y == y; /* a NaN is neither less, equal nor greater */
        if (!is_ordered)
            return op == T_NE;
        less = x < y, same = x == y;
    } else {
        less = order_of(a, b) < 0, same = order_of(a, b) == 0;
    }
    const bool holds[] = {[T_EQ] = same,         [T_NE] = !same,          [T_LT] = less,
                          [T_LE] = less || same, [T_GT] = !less && !same, [T_GE] = !less};
    return holds[op];
}

static void add_signed(struct text *t, long long v)
{
    const char *name = v < 0 && v > -4096 ? t_errno_name((int)-v) : NULL;

    text_add(t, "%lld", v);
    if (name != NULL)
        text_add(t, " (%s)", name);
    else if (v > 9 || v < 0)
        text_add(t, " (0x%llx)", (unsigned long long)v);
}

static void add_value(struct text *t, struct t_value v)
{
    switch (v.kind) {
    case T_SIGNED:
        add_signed(t, v.s);
        break;
    case T_UNSIGNED:
        text_add(t, v.u > 9 ? "%llu (0x%llx)" : "%llu", v.u, v.u);
        break;
    case T_BOOL:
        text_add(t, "%s", v.u ? "true" : "false");
        break;
    case T_POINTER:
        if (v.u == 0)
            text_add(t, "NULL");
        else
            text_add(t, "0x%llx", v.u);
        break;
    case T_DOUBLE:
        text_add(t, "%.17g", v.d);
        break;
    }
}

void t_check_failed(const char *file, int line, const char *text)
{
    t_record_claim(T_FAILED);
    snprintf(t_record->text, sizeof t_record->text, "%s", text);
    snprintf(t_record->detail, sizeof t_record->detail, "is false");
    t_record_tell(file, line);
}

void t_compare_failed(enum t_op op, struct t_value got, struct t_value want, const char *file,
                      int line, const char *got_text, const char *want_text)
{
    static const char *const sign[] = {"==", "!=", "<", "<=", ">", ">="};
    static const char *const wish[] = {"", "anything but ", "< ", "<= ", "> ", ">= "};

    t_record_claim(T_FAILED);
    snprintf(t_record->text, sizeof t_record->text, "%s %s %s", got_text, sign[op], want_text);
    struct text d = detail();
    text_add(&d, "got ");
    add_value(&d, got);
    text_add(&d, ", want %s", wish[op]);
    add_value(&d, want);
    t_record_tell(file, line);
}

/* ---- strings and bytes ---- */

enum { NEAR = 24, ROW = 16 };

static void add_quoted(struct text *t, const char *s, size_t from, size_t to)
{
    text_add(t, "%s\"", from > 0 ? "..." : "");
    for (size_t i = from; i < to && s[i] != '\0'; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            text_add(t, "\\%c", c);
        else if (c == '\n')
            text_add(t, "\\n");
        else if (isprint(c))
            text_add(t, "%c", c);
        else
            text_add(t, "\\x%02x", c);
    }
    text_add(t, "\"%s", strlen(s) > to ? "..." : "");
}

static void add_text(struct text *t, const char *s, size_t differs_at)
{
    size_t from = differs_at > NEAR ? differs_at - NEAR : 0;

    if (s == NULL)
        text_add(t, "NULL");
    else
        add_quoted(t, s, from, differs_at + NEAR);
}

static size_t first_difference(const char *a, const char *b)
{
    size_t i = 0;
    while (a != NULL && b != NULL && a[i] == b[i] && a[i] != '\0')
        i++;
    return i;
}

void t_compare_text(const char *got, const char *want, const char *file, int line,
                    const char *got_text, const char *want_text)
{
    if (got == want || (got != NULL && want != NULL && strcmp(got, want) == 0))
        return;
    t_record_claim(T_FAILED);
    size_t at = first_difference(got, want);
    snprintf(t_record->text, sizeof t_record->text, "%s == %s", got_text, want_text);
    struct text d = detail();
    bool is_long = got != NULL && want != NULL && (strlen(got) > NEAR || strlen(want) > NEAR);
    if (is_long)
        text_add(&d, "differ at byte %zu of %zu and %zu\n", at, strlen(got), strlen(want));
    text_add(&d, is_long ? "got  " : "got ");
    add_text(&d, got, at);
    text_add(&d, is_long ? "\nwant " : ", want ");
    add_text(&d, want, at);
    if (got != NULL && want != NULL && !is_long)
        text_add(&d, ", differ at byte %zu", at);
    t_record_tell(file, line);
}

static void add_row(struct text *t, const char *name, const unsigned char *bytes, size_t from,
                    size_t size)
{
    text_add(t, "\n%-4s %06zx ", name, from);
    for (size_t i = from; i < from + ROW; i++)
        if (i < size)
            text_add(t, " %02x", bytes[i]);
        else
            text_add(t, "   ");
    text_add(t, "  ");
    for (size_t i = from; i < from + ROW && i < size; i++)
        text_add(t, "%c", isprint(bytes[i]) ? bytes[i] : '.');
}

static void add_marks(struct text *t, const unsigned char *a, const unsigned char *b, size_t from,
                      size_t size)
{
    size_t last = size - from < ROW ? size - from : ROW;

    if (memcmp(a + from, b + from, last) == 0)
        return;
    text_add(t, "\n            ");
    for (size_t i = from; i < from + ROW && i < size; i++)
        text_add(t, "%s", a[i] != b[i] ? " ^^" : "   ");
    while (t->at[t->used - 1] == ' ')
        t->at[--t->used] = '\0';
}

void t_compare_bytes(const void *got_, const void *want_, size_t size, const char *file, int line,
                     const char *got_text, const char *want_text)
{
    const unsigned char *got = got_, *want = want_;
    size_t at = 0, count = 0;

    if (size == 0 || memcmp(got, want, size) == 0)
        return;
    t_record_claim(T_FAILED);
    while (got[at] == want[at])
        at++;
    for (size_t i = at; i < size; i++)
        count += got[i] != want[i];
    snprintf(t_record->text, sizeof t_record->text, "%s == %s", got_text, want_text);
    struct text d = detail();
    text_add(&d, "%zu of %zu bytes differ, the first at %zu (0x%zx)", count, size, at, at);
    size_t row = at - at % ROW;
    for (size_t from = row >= ROW ? row - ROW : 0; from <= row + ROW && from < size; from += ROW) {
        add_row(&d, "got", got, from, size);
        add_row(&d, "want", want, from, size);
        add_marks(&d, got, want, from, size);
    }
    t_record_tell(file, line);
}

/* ---- words ---- */

void t_fail(const char *file, int line, const char *format, ...)
{
    va_list args;

    t_record_claim(T_FAILED);
    va_start(args, format);
    vsnprintf(t_record->text, sizeof t_record->text, format, args);
    va_end(args);
    t_record_tell(file, line);
}

void t_skip(const char *format, ...)
{
    va_list args;

    t_record_claim(T_SKIPPED);
    va_start(args, format);
    vsnprintf(t_record->text, sizeof t_record->text, format, args);
    va_end(args);
    t_record_tell("", 0);
}

void t_note(const char *format, ...)
{
    char line[256];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    strcat(line, "\n");
    unsigned size = (unsigned)strlen(line);
    unsigned at = atomic_fetch_add(&t_record->notes_used, size);
    if (at + size < sizeof t_record->notes) /* the last byte stays 0 */
        memcpy(t_record->notes + at, line, size);
}

/* The slot of this thread: the one that bears its id, else a free one, else another's. */
static struct t_watch_slot *watch_slot(int tid)
{
    struct t_watch_slot *slot = t_record->watch;

    for (int i = 0; i < T_THREADS_MAX; i++) {
        int owner = atomic_load(&slot[i].tid);
        if (owner == tid ||
            (owner == 0 && atomic_compare_exchange_strong(&slot[i].tid, &owner, tid)))
            return &slot[i];
    }
    return &slot[tid % T_THREADS_MAX];
}

void t_watch(const char *format, ...)
{
    struct t_watch_slot *slot = watch_slot(t_self_tid());
    va_list args;

    va_start(args, format);
    vsnprintf(slot->text, sizeof slot->text, format, args);
    va_end(args);
}

void t_watch_end(void)
{
    int tid = t_self_tid();

    for (int i = 0; i < T_THREADS_MAX; i++)
        if (atomic_load(&t_record->watch[i].tid) == tid) {
            t_record->watch[i].text[0] = '\0';
            atomic_store(&t_record->watch[i].tid, 0);
        }
}
