/*
 * run.c - the parent: starts each case in a process of its own, watches the time, gathers the ends.
 *
 * One thread and no signal handler: SIGCHLD and the signals that mean us to stop are blocked and
 * waited for, a tick at a time. A case is the leader of a process group, so that whatever it started
 * can be found and ended with it; and we adopt orphans, so that they can be waited for.
 *
 * Time. The limit is of wall time, for a case that waits for ever uses no other. Three kinds of
 * time do not count: the time before the body begins (up to a minute), and the time in which we did
 * not run ourselves (a suspended machine). Also the time that the case's threads waited for a CPU
 * (a loaded machine), up to four times the limit.
 */
#include "record.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_S = 60, BEGIN_S = 60, TICK_MS = 50, ORPHAN_WAIT_MS = 2000 };
static const off_t output_max = 16 << 20;

static struct t_options options;
static struct t_case *cases, **cases_end = &cases;
static struct t_run *slots; /* options.jobs of them; free if pid is 0 */
static sigset_t mask_before, mask_waited;

void t_register(struct t_case *c)
{
    *cases_end = c;
    cases_end = &c->next;
}

uint32_t t_any_number(void)
{
    uint32_t number;
    return getentropy(&number, sizeof number) == 0 ? number : (uint32_t)getpid();
}

unsigned t_cpus(void)
{
    return (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
}

/* ---- choosing ---- */

static void name_of(char *into, size_t size, const struct t_case *c)
{
    snprintf(into, size, "%s.%s", c->noun, c->property);
}

static bool matches(const struct t_case *c, const char *filter)
{
    char name[256];
    name_of(name, sizeof name, c);
    return fnmatch(filter, name, 0) == 0;
}

static bool is_chosen(const struct t_case *c)
{
    for (int i = 0; i < options.filter_count; i++)
        if (matches(c, options.filters[i]))
            return true;
    return options.filter_count == 0;
}

static void check_filter(const char *filter)
{
    for (struct t_case *c = cases; c != NULL; c = c->next)
        if (matches(c, filter))
            return;
    if (T_BROKEN(9))
        return;
    fprintf(stderr, "%s: no case matches '%s'; --list names them\n", options.program, filter);
    exit(2);
}

static void check_names(void)
{
    for (struct t_case *c = cases; c != NULL; c = c->next)
        for (struct t_case *d = c->next; d != NULL; d = d->next)
            if (strcmp(c->noun, d->noun) == 0 && strcmp(c->property, d->property) == 0) {
                fprintf(stderr, "%s: two cases are called %s.%s: %s:%d and %s:%d\n",
                        options.program, c->noun, c->property, t_short_path(c->file), c->line,
                        t_short_path(d->file), d->line);
                exit(2);
            }
    if (cases == NULL) {
        fprintf(stderr, "%s: there are no cases in this program\n", options.program);
        exit(2);
    }
}

static void list(void)
{
    for (struct t_case *c = cases; c != NULL; c = c->next)
        if (is_chosen(c) && options.verbose)
            printf("%s.%s   %s:%d\n", c->noun, c->property, t_short_path(c->file), c->line);
        else if (is_chosen(c))
            printf("%s.%s\n", c->noun, c->property);
}

/* ---- starting ---- */

static void close_all_from(int first)
{
#if defined(SYS_close_range)
    if (syscall(SYS_close_range, (unsigned)first, ~0u, 0) == 0)
        return;
#endif
    for (int fd = first; fd < 4096; fd++)
        close(fd);
}

static _Noreturn void child_main(struct t_run *run, pid_t parent)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(T_EXIT_FAILED);
    dup2(null, STDIN_FILENO);
    dup2(run->output_fd, STDOUT_FILENO);
    dup2(run->output_fd, STDERR_FILENO);
    close_all_from(STDERR_FILENO + 1);
    sigprocmask(SIG_SETMASK, &mask_before, NULL);
    t_record = run->record;
    t_is_quick = run->is_quick;
    t_case_run(run->c, run->seed);
}

static bool is_quick(void)
{
    return (uint64_t)time(NULL) >= options.quick_from;
}

static double limit_of(const struct t_case *c)
{
    if (options.time_limit_s > 0)
        return options.time_limit_s;
    return (double)(c->limit_s > 0 ? c->limit_s : LIMIT_S) * t_patience();
}

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", options.program, what, strerror(errno));
    exit(2);
}

static void run_start(struct t_run *run, struct t_case *c, unsigned round)
{
    struct t_record *record = run->record;
    pid_t self = getpid();

    memset(record, 0, sizeof *record);
    *run = (struct t_run){.c = c, .record = record, .limit_s = limit_of(c)};
    run->is_quick = is_quick();
    run->seed = round == 0 ? options.seed : t_mix(options.seed + round) & UINT32_MAX;
    run->output_fd = memfd_create("output", MFD_CLOEXEC);
    if (run->output_fd == -1)
        give_up("cannot make a file for a case's output");
    run->began_ns = run->seen_ns = t_now_ns();
    fflush(NULL);
    run->pid = fork();
    if (run->pid == -1)
        give_up("cannot start a process for a case");
    if (run->pid == 0)
        child_main(run, self);
    setpgid(run->pid, run->pid); /* the first one */
}

/* ---- watching ---- */

/* The longest that one of its threads has waited for a CPU so far. */
static double starved_s(pid_t pid)
{
    char path[64];
    unsigned long long longest = 0;
    struct dirent *entry;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
        char file[352];
        unsigned long long waited = 0;
        snprintf(file, sizeof file, "%s/%s/schedstat", path, entry->d_name);
        FILE *f = fopen(file, "re");
        if (f == NULL)
            continue;
        if (fscanf(f, "%*u %llu", &waited) == 1 && waited > longest)
            longest = waited;
        fclose(f);
    }
    if (tasks != NULL)
        closedir(tasks);
    return (double)longest / 1e9;
}

static bool is_over_time(struct t_run *run)
{
    uint64_t now = t_now_ns(), passed = now - run->seen_ns;

    run->seen_ns = now;
    if (!atomic_load(&run->record->has_begun) &&
        now - run->began_ns < BEGIN_S * UINT64_C(1000000000))
        return false;
    run->awake_ns += passed < 1000000000u ? passed : 1000000000u;
    double awake_s = (double)run->awake_ns / 1e9;
    if (awake_s < run->limit_s || T_BROKEN(3))
        return false;
    return awake_s > 4 * run->limit_s || awake_s - starved_s(run->pid) > run->limit_s;
}

static void run_take_stacks(struct t_run *run)
{
    size_t size;
    FILE *out = open_memstream(&run->stacks, &size);

    if (out == NULL)
        return;
    t_stacks_of_process(out, run->pid, run->record);
    fclose(out);
}

static void run_watch(struct t_run *run)
{
    struct stat st;

    if (run->is_expired || run->is_flooding)
        return; /* and killed */
    if (fstat(run->output_fd, &st) == 0 && st.st_size > output_max) {
        run->is_flooding = true;
        kill(-run->pid, SIGKILL);
    } else if (atomic_load(&run->record->wants_stacks)) {
        run_take_stacks(run);
        atomic_store(&run->record->wants_stacks, 0);
    } else if (is_over_time(run)) {
        run->is_expired = true;
        run_take_stacks(run);
        kill(-run->pid, SIGKILL);
    }
}

/* ---- ending ---- */

/* True if its process group still has processes. Dead processes that we have adopted do not
 * count. */
static bool group_is_alive(pid_t group)
{
    while (waitpid(-group, NULL, WNOHANG) > 0)
        continue;
    return kill(-group, 0) == 0;
}

static void run_clear_group(struct t_run *run)
{
    for (uint64_t until = 0; group_is_alive(run->pid) && t_waits(&until, ORPHAN_WAIT_MS);)
        if (atomic_load(&run->record->state) != T_RETURNED)
            kill(-run->pid, SIGKILL); /* it has failed already: nothing to find out */
    run->has_orphans = group_is_alive(run->pid);
    kill(-run->pid, SIGKILL);
}

static bool run_end(struct t_run *run, struct t_totals *totals)
{
    run->seen_ns = t_now_ns();
    run_clear_group(run);
    bool ok = t_report(run, totals);
    close(run->output_fd);
    free(run->stacks);
    run->pid = 0;
    return ok;
}

static _Noreturn void interrupted(int signo)
{
    for (unsigned i = 0; i < options.jobs; i++)
        if (slots[i].pid != 0)
            kill(-slots[i].pid, SIGKILL);
    fprintf(stderr, "%s: interrupted\n", options.program);
    signal(signo, SIG_DFL);
    sigprocmask(SIG_SETMASK, &mask_before, NULL);
    raise(signo);
    exit(1);
}

/* Sleep until a child ends, or for a tick. */
static void await_news(void)
{
    int signo = sigtimedwait(&mask_waited, NULL, &(struct timespec){.tv_nsec = TICK_MS * 1000000});
    if (signo > 0 && signo != SIGCHLD)
        interrupted(signo);
}

/* ---- all of them ---- */

static unsigned look_after(struct t_totals *totals, bool *is_stopping)
{
    unsigned busy = 0;

    for (unsigned i = 0; i < options.jobs; i++) {
        struct t_run *run = &slots[i];
        if (run->pid == 0)
            continue;
        if (waitpid(run->pid, &run->status, WNOHANG) == run->pid) {
            *is_stopping |= !run_end(run, totals) && options.stop;
        } else {
            run_watch(run);
            busy++;
        }
    }
    return busy;
}

static struct t_run *free_slot(void)
{
    for (unsigned i = 0; i < options.jobs; i++)
        if (slots[i].pid == 0)
            return &slots[i];
    return NULL;
}

static void run_all(struct t_totals *totals)
{
    struct t_case *c = cases;
    unsigned round = 0;
    bool is_stopping = false;

    for (;;) {
        struct t_run *slot;
        while (c != NULL && !is_stopping && (slot = free_slot()) != NULL) {
            if (is_chosen(c))
                run_start(slot, c, round);
            if (!is_chosen(c) || ++round == options.repeat)
                c = c->next, round = 0;
        }
        unsigned busy = look_after(totals, &is_stopping);
        if (busy == 0 && (c == NULL || is_stopping))
            return;
        if (busy == options.jobs || c == NULL || is_stopping)
            await_news();
    }
}

static void prepare(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigemptyset(&mask_waited);
    sigaddset(&mask_waited, SIGCHLD);
    sigaddset(&mask_waited, SIGINT);
    sigaddset(&mask_waited, SIGTERM);
    sigaddset(&mask_waited, SIGHUP);
    sigprocmask(SIG_BLOCK, &mask_waited, &mask_before);
    slots = calloc(options.jobs, sizeof *slots);
    if (slots == NULL)
        give_up("no memory");
    for (unsigned i = 0; i < options.jobs; i++) {
        slots[i].record = mmap(NULL, sizeof *slots[i].record, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (slots[i].record == MAP_FAILED)
            give_up("no memory");
    }
}

static void run_here(void)
{
    static struct t_record record;

    t_record = &record;
    t_is_quick = is_quick();
    for (struct t_case *c = cases; c != NULL; c = c->next)
        if (is_chosen(c))
            t_case_run(c, options.seed);
}

int main(int argc, char **argv)
{
    struct t_totals totals = {0, 0, 0};

    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* cases inherit it: a crash loses no line */
    t_options_parse(&options, argc, argv);
    t_options = &options;
    check_names();
    for (int i = 0; i < options.filter_count; i++)
        check_filter(options.filters[i]);
    if (options.list) {
        list();
        return 0;
    }
    if (options.here)
        run_here();
    prepare();
    run_all(&totals);
    printf("%u passed, %u failed, %u skipped\n", totals.passed, totals.failed, totals.skipped);
    return totals.failed > 0 ? 1 : 0;
}
