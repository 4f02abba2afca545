/*
 * windows.c - the harness on Windows: the parent, the child, and CHECK_ABORTS.
 *
 * There is no fork. The parent starts its own program again for each case, and hands it a record in shared memory by the number of
 * an inherited handle. The child's output goes to a temporary file. CHECK_ABORTS starts the case once more with the number of the
 * check: that process runs up to there, makes the call, and must abort. The checks before it are passed over, so the case must
 * reach the same call each time. DIES (support/death.h) is the same.
 *
 * Less than elsewhere: cases run one at a time, leaks are not looked for, and on expiry no stacks are taken.
 */
#include "record.h"

#include <windows.h>

#include <signal.h>
#include <stdarg.h>
#include <time.h>

enum { LIMIT_S = 60, TELL_WAIT_MS = 60000, EXIT_ABORT = 3, OUTPUT_SHOWN = 16 << 10 };

struct t_record *t_record;
const struct t_options *t_options;
bool t_is_quick;

static struct t_options options;
static struct t_case *cases;
static struct t_case *now_running;
static unsigned abort_at; /* this process makes the call of that CHECK_ABORTS; 0: none */
static uint64_t seed_of_case;

void t_register(struct t_case *c)
{
    c->next = cases; /* constructors run from the last to the first */
    cases = c;
}

int t_self_tid(void)
{
    return (int)GetCurrentThreadId();
}

uint32_t t_any_number(void)
{
    LARGE_INTEGER at;
    QueryPerformanceCounter(&at);
    return (uint32_t)t_mix((uint64_t)at.QuadPart + GetCurrentProcessId());
}

unsigned t_cpus(void)
{
    return 1; /* cases run one at a time */
}

/* ---- work and patience ---- */

bool t_under_valgrind(void)
{
    return false;
}

unsigned t_slowdown(void)
{
    return 1;
}

unsigned t_patience(void)
{
    return 2; /* an emulated system */
}

uint64_t t_scaled(uint64_t full)
{
    uint64_t part = t_is_quick ? full / 10 : full;
    return part > 0 ? part : 1;
}

void t_may_leave(unsigned what)
{
    (void)what;
}

/* ---- names ---- */

static void name_of(char *into, size_t size, const struct t_case *c)
{
    snprintf(into, size, "%s.%s", c->noun, c->property);
}

static bool fits(const char *pattern, const char *text)
{
    for (; *pattern != '\0'; pattern++, text++) {
        if (*pattern == '*') {
            while (!fits(pattern + 1, text))
                if (*text++ == '\0')
                    return false;
            return true;
        }
        if (*text == '\0' || (*pattern != '?' && *pattern != *text))
            return false;
    }
    return *text == '\0';
}

static bool is_chosen(const struct t_case *c)
{
    char name[256];
    name_of(name, sizeof name, c);
    for (int i = 0; i < options.filter_count; i++)
        if (fits(options.filters[i], name))
            return true;
    return options.filter_count == 0;
}

/* ---- the child ---- */

static bool claimed_from(enum t_state from, enum t_state to)
{
    int expected = from;
    return atomic_compare_exchange_strong(&t_record->state, &expected, (int)to);
}

static _Noreturn void wait_for_the_end(void)
{
    for (uint64_t until = 0; !atomic_load(&t_record->is_told) && t_waits(&until, TELL_WAIT_MS);)
        continue;
    t_nap_ms(500);
    _exit(T_EXIT_FAILED);
}

void t_record_claim(enum t_state to)
{
    if (!claimed_from(T_RUNNING, to) && !(to == T_FAILED && claimed_from(T_RETURNED, to)))
        wait_for_the_end();
}

static _Atomic(void (*)(void)) at_failure;

void t_at_failure(void (*fn)(void))
{
    atomic_store(&at_failure, fn);
}

void t_record_tell(const char *file, int line)
{
    void (*say_more)(void) = atomic_exchange(&at_failure, NULL);
    if (say_more != NULL && atomic_load(&t_record->state) != T_SKIPPED)
        say_more();
    snprintf(t_record->file, sizeof t_record->file, "%s", t_short_path(file));
    t_record->line = line;
    t_record->told_by = t_self_tid();
    atomic_store(&t_record->is_told, 1);
    if (options.here)
        fprintf(stderr, "%s:%d: %s   %s\n", t_record->file, line, t_record->text, t_record->detail);
    fflush(NULL);
    _exit(T_EXIT_FAILED);
}

static LONG CALLBACK on_crash(EXCEPTION_POINTERS *what)
{
    const EXCEPTION_RECORD *r = what->ExceptionRecord;
    t_record->crash.signo = (int)r->ExceptionCode;
    t_record->crash.address = r->NumberParameters > 1 ? r->ExceptionInformation[1] : 0;
    t_record->crash.stack.pc[0] =
        (uintptr_t)r->ExceptionAddress - (uintptr_t)GetModuleHandleA(NULL);
    atomic_store(&t_record->crash.is_told, 1);
    TerminateProcess(GetCurrentProcess(), r->ExceptionCode);
    return EXCEPTION_EXECUTE_HANDLER;
}

_Noreturn void t_case_run(struct t_case *c, uint64_t seed)
{
    now_running = c;
    seed_of_case = seed;
    SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX);
    if (!options.here)
        SetUnhandledExceptionFilter(on_crash);
    t_random_start(seed);
    atomic_store(&t_record->has_begun, 1);
    c->body();
    fflush(NULL);
    if (abort_at != 0)
        _exit(T_EXIT_FAILED);
    if (!claimed_from(T_RUNNING, T_RETURNED))
        wait_for_the_end();
    exit(0);
}

/* ---- another process of this program ---- */

struct child {
    HANDLE process, output;
    char output_path[MAX_PATH];
};

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "%s: %s: error %lu\n", options.program, what, GetLastError());
    exit(2);
}

/* Memory or a file that a child inherits. */
static SECURITY_ATTRIBUTES inherited = {sizeof inherited, NULL, TRUE};

static void child_start(struct child *it, const struct t_case *c, uint64_t seed, unsigned check,
                        HANDLE record)
{
    char program[MAX_PATH], name[256], command[2 * MAX_PATH + 512], folder[MAX_PATH];
    STARTUPINFOA start = {.cb = sizeof start, .dwFlags = STARTF_USESTDHANDLES};
    PROCESS_INFORMATION made;

    name_of(name, sizeof name, c);
    if (GetModuleFileNameA(NULL, program, sizeof program) == 0 ||
        GetTempPathA(sizeof folder, folder) == 0 ||
        GetTempFileNameA(folder, "blz", 0, it->output_path) == 0)
        give_up("cannot name a file for a case's output");
    it->output = CreateFileA(it->output_path, GENERIC_READ | GENERIC_WRITE,
                             FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, &inherited,
                             CREATE_ALWAYS, FILE_FLAG_DELETE_ON_CLOSE, NULL);
    if (it->output == INVALID_HANDLE_VALUE)
        give_up("cannot make a file for a case's output");
    snprintf(command, sizeof command, "\"%s\" %s --seed=%llu%s --record=%llu --abort-at=%u",
             program, name, (unsigned long long)seed, t_is_quick ? " --quick" : "",
             (unsigned long long)(uintptr_t)record, check);
    start.hStdInput = INVALID_HANDLE_VALUE;
    start.hStdOutput = start.hStdError = it->output;
    fflush(NULL);
    if (!CreateProcessA(program, command, NULL, NULL, TRUE, 0, NULL, NULL, &start, &made))
        give_up("cannot start a process for a case");
    CloseHandle(made.hThread);
    it->process = made.hProcess;
}

/* Wait for its end. Returns its exit code, or -1: it was ended by us. */
static long long child_end(struct child *it, double limit_s)
{
    DWORD code = 0;
    bool is_late = WaitForSingleObject(it->process, (DWORD)(limit_s * 1000)) != WAIT_OBJECT_0;
    if (is_late) {
        TerminateProcess(it->process, T_EXIT_FAILED);
        WaitForSingleObject(it->process, INFINITE);
    }
    GetExitCodeProcess(it->process, &code);
    CloseHandle(it->process);
    return is_late ? -1 : (long long)code;
}

/* Copy the end of its output. Closes the file, which removes it. */
static void child_output(struct child *it, char *into, size_t size)
{
    DWORD got = 0, bytes = GetFileSize(it->output, NULL);
    LONG from = bytes > size - 1 ? (LONG)(bytes - (size - 1)) : 0;
    SetFilePointer(it->output, from, NULL, FILE_BEGIN);
    ReadFile(it->output, into, (DWORD)size - 1, &got, NULL);
    into[got] = '\0';
    CloseHandle(it->output);
}

/* ---- CHECK_ABORTS ---- */

static unsigned checks; /* the number of the last CHECK_ABORTS or DIES */

bool t_dies_here(void)
{
    if (++checks != abort_at)
        return false;
    SetUnhandledExceptionFilter(NULL);
    return true;
}

void t_dies_elsewhere(const char *says, const char *file, int line, const char *text)
{
    char said[4096];
    struct child it;

    if (checks < abort_at)
        return;
    child_start(&it, now_running, seed_of_case, checks, NULL);
    long long code = child_end(&it, LIMIT_S);
    child_output(&it, said, sizeof said);
    if (code == EXIT_ABORT && strstr(said, says) != NULL)
        return;
    t_record_claim(T_FAILED);
    snprintf(t_record->text, sizeof t_record->text, "%s aborts", text);
    snprintf(t_record->detail, sizeof t_record->detail,
             "exit status 0x%llx, want that of abort() and \"%s\"\nit said: %.2000s", code, says,
             said);
    t_record_tell(file, line);
}

void t_check_aborts(void (*fn)(void *), void *arg, const char *says, const char *file, int line,
                    const char *text)
{
    if (t_dies_here()) {
        fn(arg);
        fflush(NULL);
        _exit(0);
    }
    t_dies_elsewhere(says, file, line, text);
}

/* ---- the parent ---- */

static double limit_of(const struct t_case *c)
{
    if (options.time_limit_s > 0)
        return options.time_limit_s;
    return (double)(c->limit_s > 0 ? c->limit_s : LIMIT_S) * t_patience();
}

/* The verdict in words; NULL: it passed. */
static const char *verdict(char *into, size_t size, long long code)
{
    const struct t_record *r = t_record;
    int state = atomic_load(&r->state);
    if (code == -1)
        snprintf(into, size, "its time is over");
    else if (atomic_load(&r->crash.is_told))
        snprintf(into, size, "the case crashed   exception 0x%x at 0x%llx, by code at +0x%llx",
                 (unsigned)r->crash.signo, (unsigned long long)r->crash.address,
                 (unsigned long long)r->crash.stack.pc[0]);
    else if (state == T_FAILED)
        snprintf(into, size, "%s:%d\n     %s   %s", r->file, r->line, r->text, r->detail);
    else if (state == T_RETURNED && code == 0)
        return NULL;
    else
        snprintf(into, size, "the case did not return   exit status 0x%llx", code);
    return into;
}

static void print_notes(void)
{
    t_record->notes[sizeof t_record->notes - 1] = '\0';
    for (char *line = strtok(t_record->notes, "\n"); line != NULL; line = strtok(NULL, "\n"))
        printf("     note: %s\n", line);
}

/* Returns false if it failed. */
static bool run_case(struct t_case *c, uint64_t seed, HANDLE record, struct t_totals *totals)
{
    static char output[OUTPUT_SHOWN], words[sizeof t_record->text + sizeof t_record->detail + 512];
    char name[256];
    struct child it;
    uint64_t began = t_now_ns();

    memset(t_record, 0, sizeof *t_record);
    name_of(name, sizeof name, c);
    child_start(&it, c, seed, 0, record);
    long long code = child_end(&it, limit_of(c));
    child_output(&it, output, sizeof output);
    const char *why = verdict(words, sizeof words, code);
    bool is_skipped = code != -1 && atomic_load(&t_record->state) == T_SKIPPED;
    if (is_skipped) {
        totals->skipped++;
        printf("SKIP %s   %s\n", name, t_record->text);
    } else if (why == NULL) {
        totals->passed++;
        if (options.verbose || t_record->notes[0] != '\0')
            printf("PASS %s   %.0f ms\n", name, (double)(t_now_ns() - began) / 1e6);
    } else {
        totals->failed++;
        printf("FAIL %s   %s\n     again with: %s %s --seed=0x%llx\n", name, why, options.program,
               name, (unsigned long long)seed);
        for (int i = 0; i < T_THREADS_MAX; i++)
            if (atomic_load(&t_record->watch[i].tid) != 0)
                printf("     while: %s\n", t_record->watch[i].text);
    }
    print_notes();
    bool is_failed = why != NULL && !is_skipped;
    if ((is_failed || options.verbose) && output[0] != '\0')
        printf("     it printed:\n%s\n", output);
    fflush(stdout);
    return !is_failed;
}

static void run_all(struct t_totals *totals)
{
    HANDLE record = CreateFileMappingA(INVALID_HANDLE_VALUE, &inherited, PAGE_READWRITE, 0,
                                       sizeof *t_record, NULL);
    t_record = record != NULL ? MapViewOfFile(record, FILE_MAP_ALL_ACCESS, 0, 0, 0) : NULL;
    if (t_record == NULL)
        give_up("no memory");
    for (struct t_case *c = cases; c != NULL; c = c->next)
        for (unsigned round = 0; is_chosen(c) && round < options.repeat; round++) {
            uint64_t seed = round == 0 ? options.seed : t_mix(options.seed + round) & UINT32_MAX;
            if (!run_case(c, seed, record, totals) && options.stop)
                return;
        }
}

/* ---- the start ---- */

/* Take the arguments that only this file knows. Returns those that are left. */
static int take_own_arguments(int argc, char **argv, HANDLE *record)
{
    int left = 0;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "--record=", 9) == 0)
            *record = (HANDLE)(uintptr_t)strtoull(argv[i] + 9, NULL, 10);
        else if (strncmp(argv[i], "--abort-at=", 11) == 0)
            abort_at = (unsigned)strtoul(argv[i] + 11, NULL, 10);
        else
            argv[left++] = argv[i];
    }
    argv[left] = NULL;
    return left;
}

static _Noreturn void run_here(HANDLE record)
{
    static struct t_record own;

    t_record = record != NULL ? MapViewOfFile(record, FILE_MAP_ALL_ACCESS, 0, 0, 0) : &own;
    if (t_record == NULL)
        give_up("no record");
    for (struct t_case *c = cases; c != NULL; c = c->next)
        if (is_chosen(c))
            t_case_run(c, options.seed);
    fprintf(stderr, "%s: no such case\n", options.program);
    exit(2);
}

int main(int argc, char **argv)
{
    struct t_totals totals = {0, 0, 0};
    HANDLE record = NULL;
    bool is_child;

    argc = take_own_arguments(argc, argv, &record);
    is_child = record != NULL || abort_at != 0;
    t_options_parse(&options, argc, argv);
    t_options = &options;
    t_is_quick = (uint64_t)time(NULL) >= options.quick_from;
    setvbuf(stdout, NULL, _IONBF,
            0); /* a crash loses no line; this C library has no line buffers */
    if (is_child || options.here)
        run_here(record);
    for (struct t_case *c = cases; options.list && c != NULL; c = c->next)
        if (is_chosen(c))
            printf("%s.%s\n", c->noun, c->property);
    if (options.list)
        return 0;
    run_all(&totals);
    printf("%u passed, %u failed, %u skipped\n", totals.passed, totals.failed, totals.skipped);
    return totals.failed > 0 ? 1 : 0;
}
