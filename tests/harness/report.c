/*
 * report.c - what became of a case, in words.
 *
 *     FAIL chan.close_wakes_a_parked_receiver   tests/unit/chan_test.c:41
 *          t_join(rx) == -EPIPE                 got 0, want -32 (EPIPE)
 *          again with: test_chan chan.close_wakes_a_parked_receiver --seed=0x5f3a91c2
 */
#include "record.h"

#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum verdict { PASS, FAIL_, SKIP };

struct story {
    enum verdict verdict;
    char file[256];
    int line;
    char text[1024];
    char detail[6144];
    bool has_crashed;
};

static const size_t shown_head = 8 << 10, shown_tail = 24 << 10;

/* ---- result of a case ---- */

static void tell(struct story *s, const char *text, const char *format, ...) T_PRINTF(3, 4);

static void tell(struct story *s, const char *text, const char *format, ...)
{
    va_list args;

    s->verdict = FAIL_;
    snprintf(s->text, sizeof s->text, "%s", text);
    va_start(args, format);
    vsnprintf(s->detail, sizeof s->detail, format, args);
    va_end(args);
}

/* The first line in which a sanitizer says what it found. */
static void sanitizer_headline(char *into, size_t size, const char *output)
{
    static const char *const marks[] = {"ERROR: ", "WARNING: ThreadSanitizer", "runtime error: "};

    snprintf(into, size, "see what it printed");
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        const char *found = strstr(output, marks[i]);
        if (found == NULL)
            continue;
        found += strncmp(found, "ERROR: ", 7) == 0 ? 7 : 0;
        found += strncmp(found, "WARNING: ", 9) == 0 ? 9 : 0;
        int length = (int)strcspn(found, "\n");
        snprintf(into, size, "%.*s", length > 160 ? 160 : length, found);
        return;
    }
}

static void tell_exit(struct story *s, const struct t_run *run, const char *output)
{
    int code = WEXITSTATUS(run->status);
    bool has_returned = atomic_load(&run->record->state) == T_RETURNED;

    if (code == T_EXIT_SANITIZER) {
        char line[256];
        sanitizer_headline(line, sizeof line, output);
        tell(s, "a sanitizer's report", "%s", line);
    } else if (has_returned && code == 0 && run->has_orphans) {
        tell(s, "the case leaves something behind",
             "leaks a process, started by a child of its own");
    } else if ((has_returned || T_BROKEN(5)) && code == 0) {
        s->verdict = PASS;
    } else if (has_returned) {
        tell(s, "the process failed after the case's end", "exit status %d", code);
    } else {
        tell(s, "the case did not return", "exit(%d) was called in it", code);
    }
}

static void tell_signal(struct story *s, const struct t_run *run)
{
    int signo = WTERMSIG(run->status);
    const struct t_record *r = run->record;
    const char *name = t_signal_name(signo);

    if (T_BROKEN(2))
        s->verdict = PASS;
    else if (atomic_load(&r->crash.is_told) && r->crash.has_address)
        tell(s, "the case crashed", "%s (%d) at address 0x%lx", name, signo,
             (unsigned long)r->crash.address);
    else if (signo == SIGKILL)
        tell(s, "the case was killed", "%s (%d), not by the harness; was memory short?", name,
             signo);
    else
        tell(s, "the case crashed", "%s (%d)", name, signo);
    s->has_crashed = s->verdict == FAIL_ && atomic_load(&r->crash.is_told);
}

static void tell_record(struct story *s, const struct t_record *r)
{
    s->verdict = atomic_load(&r->state) == T_SKIPPED ? SKIP : FAIL_;
    if (r->file[0] != '\0') {
        snprintf(s->file, sizeof s->file, "%.255s", r->file);
        s->line = r->line;
    }
    snprintf(s->text, sizeof s->text, "%.1023s", r->text);
    snprintf(s->detail, sizeof s->detail, "%.6143s", r->detail);
}

static void tell_all(struct story *s, const struct t_run *run, const char *output)
{
    snprintf(s->file, sizeof s->file, "%s", t_short_path(run->c->file));
    s->line = run->c->line;
    if (atomic_load(&run->record->is_told))
        tell_record(s, run->record);
    else if (run->is_expired)
        tell(s, "the case does not end", "given %g s; its stacks:", run->limit_s);
    else if (run->is_flooding)
        tell(s, "the case prints without end", "stopped at 16 MiB");
    else if (WIFSIGNALED(run->status))
        tell_signal(s, run);
    else
        tell_exit(s, run, output);
}

/* ---- how it is said ---- */

static void print_lines(const char *lines, const char *indent)
{
    while (*lines != '\0') {
        int length = (int)strcspn(lines, "\n");
        printf("%s%.*s\n", indent, length, lines);
        lines += length + (lines[length] == '\n');
    }
}

/* The two columns of the opening lines, aligned unless that takes them too far out. */
static void print_opening(const struct story *s, const char *name)
{
    int width = (int)strlen(name), text = (int)strlen(s->text);
    const char *rest = strchr(s->detail, '\n');
    int first = (int)strcspn(s->detail, "\n");
    bool is_wide = text > 72 || strchr(s->text, '\n') != NULL;

    if (!is_wide && s->detail[0] != '\0' && text > width)
        width = text;
    printf("FAIL %-*s   %s:%d\n", width, name, s->file, s->line);
    if (is_wide || s->detail[0] == '\0') {
        print_lines(s->text, "     ");
        print_lines(s->detail, "     ");
        return;
    }
    printf("     %-*s   %.*s\n", width, s->text, first, s->detail);
    if (rest != NULL)
        print_lines(rest + 1, "     ");
}

static void print_watches(const struct t_run *run, const struct story *s)
{
    struct t_record *r = run->record;
    int teller = atomic_load(&r->is_told) ? r->told_by : s->has_crashed ? r->crash.stack.tid : 0;

    for (int i = 0; i < T_THREADS_MAX; i++) {
        struct t_watch_slot *slot = &r->watch[i];
        int tid = atomic_load(&slot->tid);
        slot->text[sizeof slot->text - 1] = '\0';
        if (tid == 0 || slot->text[0] == '\0' || (teller != 0 && tid != teller))
            continue;
        printf("     while: %s%s", slot->text, teller == 0 ? "" : "\n");
        if (teller == 0)
            printf(" (thread %d)\n", tid);
    }
}

static void print_again(const struct t_run *run, const char *name)
{
    printf("     again with: %s %s --seed=0x%llx", t_options->program, name,
           (unsigned long long)run->seed);
    if (run->is_quick)
        printf(" --quick");
    if (t_options->time_limit_s > 0)
        printf(" --time-limit=%g", t_options->time_limit_s);
    printf("\n");
}

static void print_output(const char *output, size_t size)
{
    if (size == 0)
        return;
    printf("     it printed:\n");
    if (size > shown_head + shown_tail) {
        printf("     | (%zu bytes; the middle is left out)\n", size);
        char kept = output[shown_head];
        ((char *)output)[shown_head] = '\0';
        print_lines(output, "     | ");
        ((char *)output)[shown_head] = kept;
        printf("     | ...\n");
        output += size - shown_tail;
    }
    print_lines(output, "     | ");
}

static void print_failure(const struct t_run *run, const struct story *s, const char *name)
{
    print_opening(s, name);
    print_watches(run, s);
    print_lines(run->record->notes, "     note: ");
    if (run->stacks != NULL)
        printf("%s", run->stacks);
    if (s->has_crashed)
        t_stack_print(stdout, getpid(), &run->record->crash.stack, "       ");
    print_again(run, name);
}

static char *read_output(int fd, size_t *size)
{
    struct stat st;

    *size = fstat(fd, &st) == 0 ? (size_t)st.st_size : 0;
    char *text = calloc(*size + 1, 1);
    ssize_t got = text != NULL ? pread(fd, text, *size, 0) : 0;
    *size = got > 0 ? (size_t)got : 0;
    for (size_t i = 0; i < *size; i++) /* printable to the end */
        if (text[i] == '\0')
            text[i] = '?';
    return text;
}

bool t_report(const struct t_run *run, struct t_totals *totals)
{
    struct story s = {PASS, "", 0, "", "", false};
    char name[256];
    size_t size;
    char *output = read_output(run->output_fd, &size);
    double ms = (double)(run->seen_ns - run->began_ns) / 1e6;

    if (output == NULL)
        output = calloc(1, 1);
    snprintf(name, sizeof name, "%s.%s", run->c->noun, run->c->property);
    tell_all(&s, run, output);
    totals->passed += s.verdict == PASS;
    totals->failed += s.verdict == FAIL_;
    totals->skipped += s.verdict == SKIP;
    run->record->notes[sizeof run->record->notes - 1] = '\0';
    if (s.verdict == FAIL_)
        print_failure(run, &s, name);
    else if (s.verdict == SKIP)
        printf("SKIP %s   %s\n", name, s.text);
    else if (t_options->verbose || run->record->notes[0] != '\0')
        printf("PASS %s   %.0f ms\n", name, ms);
    if (s.verdict != FAIL_)
        print_lines(run->record->notes, "     note: ");
    if (s.verdict == FAIL_ || t_options->verbose)
        print_output(output, size);
    fflush(stdout);
    free(output);
    return s.verdict != FAIL_;
}
