/*
 * record.h - shared by the files of the harness.
 *
 * A case tells its parent everything through one struct t_record in memory they share. A pipe was
 * rejected: a record needs no descriptor in the case (so the case's own can be counted), it cannot
 * fill up. It also survives a crash, a SIGKILL and a hang, whose last output matters most.
 *
 * The parent forks and does not exec. It never runs a test's code and has one thread, so a forked
 * child is as clean as an executed one. fork also works under valgrind and qemu-user, which lose a
 * program that executes itself. And the parent can name a dead child's addresses by its own map.
 */
#ifndef T_RECORD_H
#define T_RECORD_H

#include "harness.h"

#include <stdatomic.h>
#include <sys/types.h>

/* Is that planted bug there? The harness's own tests must find it (tools/canaries). */
#if defined(BZ_BROKEN)
#define T_BROKEN(n) BZ_BROKEN(n)
#else
#define T_BROKEN(n) (0 == (n))
#endif

enum {
    T_DEPTH_MAX = 64,
    T_THREADS_MAX = 64,
    T_EXIT_FAILED = 1,
    T_EXIT_SANITIZER = 99, /* as told to the sanitizers, see tune.c */
};

/* Where a thread stood, innermost first. Return addresses are stored less one: inside the call. */
struct t_stack {
    int tid;
    int depth;
    uintptr_t pc[T_DEPTH_MAX];
};

/*
 *                 body returns   check fails   t_skip     something is left
 *   RUNNING       RETURNED       FAILED        SKIPPED    LEAKED
 *   RETURNED                     FAILED                                     (an atexit handler)
 *   the others are final: the first thread reports, a second one waits for the end.
 */
enum t_state { T_RUNNING, T_RETURNED, T_FAILED, T_SKIPPED, T_LEAKED };

struct t_watch_slot {
    _Atomic int tid; /* its owner; 0: free */
    char text[124];  /* written by the owner */
};

struct t_record {
    _Atomic int state;
    _Atomic int has_begun; /* the body: from here on its time counts */
    _Atomic int is_told;   /* file, line, text and detail are whole */
    int line;
    int told_by; /* the thread */
    char file[256];
    char text[1024];   /* the expression, or the message */
    char detail[6144]; /* the message; may have several lines */

    _Atomic unsigned notes_used;
    char notes[8192]; /* a line each */
    struct t_watch_slot watch[T_THREADS_MAX];

    struct {
        _Atomic int is_told;
        int signo;
        int has_address;
        uintptr_t address;
        struct t_stack stack;
    } crash;

    int strangers[8];         /* threads that were there before the case: a sanitizer's */
    _Atomic int wants_stacks; /* 1: the case waits until its parent has taken them */

    /* Filled by the thread that the parent asks for its stack. */
    struct {
        _Atomic int is_told;
        struct t_stack stack;
    } dump;
};

struct t_options {
    const char *program; /* as it was called */
    char **filters;
    int filter_count;
    uint64_t seed;
    unsigned repeat, jobs;
    double time_limit_s; /* 0: as each case says */
    uint64_t quick_from; /* cases started at this Unix time or later are quick */
    bool list, verbose, here, gdb, stop;
};

/* options.c: exits with 2 and a message when they make no sense, with 0 after --help. */
void t_options_parse(struct t_options *o, int argc, char **argv);

/* run.c */
uint32_t t_any_number(void); /* another one each time */
unsigned t_cpus(void);

/* case.c, the child's side */
extern struct t_record *t_record; /* of the case we are in; private memory with --here */
extern const struct t_options *t_options;
extern bool t_is_quick; /* do less, see t_scaled */
_Noreturn void t_case_run(struct t_case *c, uint64_t seed);
void t_record_claim(enum t_state to); /* returns to the first alone: tell, and end */
_Noreturn void t_record_tell(const char *file, int line); /* after text and detail are filled */
int t_self_tid(void);

/* check.c: this thread ends, and with it what it was about. */
void t_watch_end(void);

/* random.c */
uint64_t t_mix(uint64_t x);
void t_random_start(uint64_t seed);

void *t_thread_main(void *p); /* threads.c */

/* stacks.c, the child's side: catch crashes and the parent's question. */
void t_stacks_catch(void);
/* ... and the parent's: ask every thread, describe them all. `out` grows by what they said. */
void t_stacks_of_process(FILE *out, pid_t pid, struct t_record *r);
void t_stacks_by_gdb(FILE *out, pid_t pid);

/* symbols.c: a line for each frame. The maps are those of `pid`. */
void t_stack_print(FILE *out, pid_t pid, const struct t_stack *s, const char *indent);

/* tune.c: what we run under */
unsigned t_slowdown(void); /* by how much it slows us, about */
unsigned t_patience(void); /* by how much longer a case may take under it */
int t_ask_signal(void);    /* by which a thread is asked for its stack, see stacks.c */
int t_leak_check(void);    /* LeakSanitizer's; not 0: it found some and has reported them */

/* run.c and report.c, the parent's side */
struct t_run {
    struct t_case *c;
    uint64_t seed;
    pid_t pid;
    int status; /* as from waitpid */
    int output_fd;
    uint64_t began_ns, seen_ns, awake_ns; /* awake: while we, too, were not stopped */
    double limit_s;
    bool is_quick, is_expired, is_flooding, has_orphans;
    char *stacks; /* taken on expiry, or when the case asked */
    struct t_record *record;
};
struct t_totals {
    unsigned passed, failed, skipped;
};

bool t_report(const struct t_run *run, struct t_totals *totals); /* true unless it failed */
const char *t_short_path(const char *file);
const char *t_signal_name(int signo);
const char *t_errno_name(int err);

/* time.c */
uint64_t t_now_ns(void);
void t_nap_ms(long ms); /* below a second */
bool t_waits(uint64_t *until_ns, unsigned ms);

/* tool.c: run a program, append what it prints to `out`; its exit status or -1. */
int t_tool_run(FILE *out, const char *const argv[], double limit_s);

#endif
