"""calls.py - functions that only the implementation of a contract may call.

A whole program runs in simulation because nothing in src/ reads a clock, makes a thread, draws a
random number, spins or waits except through os/os.h and io/poll.h. One direct call breaks that, and
it breaks it silently: the run is no longer a function of its seed.
"""
import re

from lintlib import Finding, rule

# Mentioning one of these is enough.
NAMES = re.compile(r"""
    pthread_\w+ | thrd_\w+ | mtx_\w+ | cnd_\w+ | tss_\w+ | sem_(?:init|wait|post|timedwait|trywait)
  | clock_(?:gettime|getres|nanosleep|settime) | gettimeofday | timespec_get | nanosleep | usleep
  | timerfd_\w+ | timer_(?:create|settime|delete) | setitimer | getitimer
  | getrandom | getentropy | arc4random\w* | [dejlmn]rand48 | srand48 | srandom | rand_r
  | sched_(?:yield|setaffinity|getaffinity|setscheduler)
  | epoll_\w+ | ppoll | pselect | futex | eventfd | io_uring_\w+ | sigwait\w* | sigtimedwait
  | waitpid | waitid | wait3 | wait4 | membarrier
  | __builtin_ia32_pause | _mm_pause | __builtin_arm_(?:yield|wfe|isb) | _mm_mwait
  | __rdtsc\w* | __builtin_ia32_rdtsc\w* | __builtin_readcyclecounter
""", re.X)

# These are ordinary words too; only a call counts.
WORDS = {"time", "clock", "times", "sleep", "alarm", "pause", "wait", "poll", "select", "rand",
         "random", "srand", "fork", "vfork", "clone", "syscall", "ftime"}

MEMORY = {"malloc", "calloc", "realloc", "free", "aligned_alloc", "posix_memalign", "strdup",
          "strndup", "asprintf", "vasprintf", "reallocarray", "memalign", "valloc"}

SPIN_ASM = re.compile(r"\b(pause|yield|wfe|rep\s*;?\s*nop|rdtscp?|rdrand|rdseed|cntvct_el0|rdtime)\b")


def calls(f, words):
    """The identifiers of `words` that are called by that name, not through a member or as one."""
    code = f.code
    for i, t in enumerate(code[:-1]):
        if t.kind == "ident" and t.text in words and code[i + 1].text == "(":
            if i == 0 or code[i - 1].text not in ("->", "."):
                yield t


def asm_strings(f):
    """The string tokens inside asm statements."""
    depth = None
    for prev, t in zip([None] + f.code, f.code):
        if t.kind == "ident" and t.text in ("asm", "__asm__", "__asm"):
            depth = 0
        elif depth is not None:
            if t.text == "(":
                depth += 1
            elif t.text == ")":
                depth -= 1
                if depth == 0:
                    depth = None
            elif t.kind == "string":
                yield t


@rule("outside-call", "no clock, thread, sleep, random, spin or wait call outside src/os, src/io and src/sim")
def outside_call(tree):
    mend = "goes through os/os.h or io/poll.h, or simulation loses it"
    for f in tree.c_files("src/", "include/"):
        if f.under("src/os/", "src/io/", "src/sim/"):
            continue
        for t in f.code:
            if t.kind == "ident" and NAMES.fullmatch(t.text):
                yield Finding(f.path, t.line, f"{t.text} {mend}")
        for t in calls(f, WORDS):
            yield Finding(f.path, t.line, f"{t.text}() {mend}")
        for t in asm_strings(f):
            m = SPIN_ASM.search(t.text)
            if m:
                yield Finding(f.path, t.line, f"the instruction `{m.group()}` {mend}")


@rule("allocator", "memory comes from the user's allocator: malloc only in base/alloc.c and src/os")
def allocator(tree):
    for f in tree.c_files("src/", "include/"):
        if f.path == "src/base/alloc.c" or f.under("src/os/"):
            continue
        for t in calls(f, MEMORY):
            yield Finding(f.path, t.line, f"{t.text}() bypasses the user's allocator: use bz_alloc and "
                                          f"bz_free (base/alloc.h)")


SLEEPS = {"sleep", "usleep", "nanosleep", "clock_nanosleep", "thrd_sleep"}


@rule("test-sleep", "no test sleeps to win a race")
def test_sleep(tree):
    mend = ("a test that sleeps wins its race only mostly: drive the schedule, or explain with "
            "`lint: allow test-sleep: why`")
    for f in tree.files:
        if not f.under("tests/"):
            continue
        if f.is_c:
            for t in calls(f, SLEEPS):
                yield Finding(f.path, t.line, f"{t.text}(): {mend}")
        elif f.is_shell or f.is_python:
            pattern = r"^[^#]*\b(time\.sleep|asyncio\.sleep)\s*\(" if f.is_python else (
                r"^(?:[^#]*[;&|({]|\s*(?:do|then|else)?)\s*sleep\s+[\d.$]")
            for n, line in enumerate(f.lines, 1):
                if re.search(pattern, line):
                    yield Finding(f.path, n, f"sleep: {mend}")
