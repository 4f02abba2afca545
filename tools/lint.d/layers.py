"""layers.py - the tree is the architecture: an include may only go to a layer above."""
from lintlib import Finding, rule

# Reading order of docs/architecture.md: each may include those before it and itself. `sim` is the last: a library of
# its own for tests, which no other folder may include.
LAYERS = ("base os arch task time io queue thread trace proc wait life sched fork park block observe monitor runtime "
          "future sync chan par net stream fs signal process shutdown compress tls heap term actor node reductions sim").split()

# Contracts: headers that an earlier layer may include. proc/state.h has the runtime, its procs and its machines, so it
# includes the parts that these consist of: each is a struct, and includes nothing above `io` but other contracts. The
# waiter and the wake list are what io is told to wake.
CONTRACTS = set("proc/state.h wait/wake.h wait/waiter.h life/job.h life/slots.h life/tasks.h sched/host.h sched/locked.h "
                "sched/turns.h monitor/monitor.h monitor/deadlock.h runtime/clockwork.h runtime/config.h "
                "runtime/guest.h".split())

# Beyond the order: these stand on park and wake alone.
NEVER = {"future": {"par"}, "sync": {"par"}, "chan": {"par"}}

# The public headers that base may include: no runtime headers.
BASE_PUBLIC = {"blitz/api.h", "blitz/hooks.h", "blitz/version.h"}

ISO_C = {h + ".h" for h in (
    "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign "
    "stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath time uchar wchar "
    "wctype").split()}
# stdlib.h is there for blitz_drop_free (hooks.h): it must call the free() of the program, not the library's.
IN_PUBLIC = {h + ".h" for h in "stddef stdint stdbool stdarg stdlib limits errno inttypes".split()}
CHECKERS = ("sanitizer/", "valgrind/")  # annotations for tools that run our tests


def public_header(tree, f):
    for line, quote, name in f.includes():
        if quote == '"' and name.startswith("blitz/") and tree.has("include/" + name):
            continue
        if quote == "<" and name in IN_PUBLIC:
            continue
        yield Finding(f.path, line, f"a public header includes {name}: only \"blitz/...\" and plain "
                                    f"C headers ({', '.join(sorted(IN_PUBLIC))}) may leak to users")


def source(tree, f):
    here = LAYERS.index("proc" if f.path.removeprefix("src/") in CONTRACTS else f.layer)
    for line, quote, name in f.includes():
        if quote == "<":
            if name.startswith("blitz"):
                yield Finding(f.path, line, f"our own header in brackets: write \"{name}\"")
            continue
        if name == "blitz.h":
            yield Finding(f.path, line, "include the one public header that is meant, not blitz.h")
        elif name.startswith("blitz/"):
            if f.layer == "base" and name not in BASE_PUBLIC:
                yield Finding(f.path, line, f"base knows nothing of {name}: only of "
                                            f"{', '.join(sorted(BASE_PUBLIC))}")
        elif not tree.has("src/" + name):
            yield Finding(f.path, line, f"no src/{name}: name a header by its folder and file")
        else:
            there = name.split("/")[0]
            if there not in LAYERS:
                yield Finding(f.path, line, f"src/{there} is no layer of the architecture")
            elif there in NEVER.get(f.layer, ()):
                yield Finding(f.path, line, f"{f.layer} stands on park and wake alone, not on {there}")
            elif LAYERS.index(there) > here and name not in CONTRACTS:
                yield Finding(f.path, line, f"{f.layer} includes {name}, a layer below it: return "
                                            f"what {there} needs instead, or move the code")


def example(tree, f):
    folder = f.path.rsplit("/", 1)[0]
    for line, quote, name in f.includes():
        if name == "blitz.h" or name.startswith("blitz/"):
            if tree.has("include/" + name):
                continue
        elif quote == "<" or tree.has(f"{folder}/{name}"):
            continue
        yield Finding(f.path, line, f"an example includes {name}: public headers only, as a user would")


@rule("layer", "an include goes only to a layer above; public headers and examples see only public ones")
def layer(tree):
    for f in tree.c_files():
        if f.under("include/"):
            yield from public_header(tree, f)
        elif f.under("examples/"):
            yield from example(tree, f)
        elif f.under("src/"):
            if f.layer in LAYERS:
                yield from source(tree, f)
            else:
                yield Finding(f.path, 1, f"src/{f.layer} is no layer of the architecture: the layers "
                                         f"are {' '.join(LAYERS)}")


# The only files of src/ but its simulator that include a header of a system: the backends of os/os.h and of the contracts
# of io. A new one is a decision: each is work on every system that blitz is brought to.
OF_A_SYSTEM = set(("os/code.c os/forked.c os/interrupt.c os/library.c os/linux.c os/linux_clock.c os/linux_cpus.c "
                   "os/linux_pages.c os/linux_thread.c os/linux_word.c os/loaded.c os/look.c os/probe.h os/segv.c os/signals.c "
                   "os/sleepers.c os/symtab.c "
                   "os/windows.c os/windows_clock.c os/windows_look.c os/windows_pages.c os/windows_segv.c os/windows_self.c "
                   "os/windows_thread.c os/windows_word.c io/iocp.c io/winsock.c io/winsock.h io/winsock_lookup.c "
                   "io/attempt.c io/epoll.c io/fsys.c io/fsys.h io/inotify.c io/lookup.c io/poll_posix.c io/provided.c "
                   "io/kqueue_calls.c io/quiet.c io/raw.c io/readable.c io/rights.c io/small_file.c io/sock.c io/sockaddr.c "
                   "io/spawn_child.c io/sqe.c io/start_process.c io/sys.c io/sys.h io/sys_rings.c io/sys_sets.c "
                   "io/sys_sets.h io/uring.c io/uring_submit.c").split())

# Headers of theirs that layers above io may include, directly or not: static probes, the two hot calls that are inlined,
# and the flags of open(2) and stat(2).
DOORS = {"os/probe.h", "io/sys.h", "io/fsys.h"}


def is_of_a_system(quote, name):
    return quote == "<" and name not in ISO_C and not name.startswith(CHECKERS + ("blitz",))


def ways_to_a_system(tree, f):
    """(line, name of our header that f includes, name of ours that includes a system's header, the system's)."""
    for line, quote, first in f.includes():
        if quote == "<" or not tree.has("src/" + first):
            continue
        todo, seen = [first], {first}
        while todo:
            at = todo.pop()
            for _, q, name in tree.file("src/" + at).includes():
                if is_of_a_system(q, name) and at.startswith(("os/", "io/")) and at not in DOORS:
                    yield line, first, at, name
                elif q != "<" and name not in seen and tree.has("src/" + name):
                    seen.add(name)
                    todo.append(name)


@rule("platform", "headers of a system only in named files of src/os and src/io, and in src/sim: the rest is C11")
def platform(tree):
    for f in tree.c_files("src/"):
        here = f.path.removeprefix("src/")
        if f.layer == "sim" or here in OF_A_SYSTEM:
            continue
        for line, quote, name in f.includes():
            if is_of_a_system(quote, name):
                yield Finding(f.path, line, f"<{name}> belongs to a platform: ask for what it gives "
                                            f"through os/os.h, io/poll.h or io/sys.h")
        if f.layer in ("os", "io"):
            continue
        for line, first, at, name in ways_to_a_system(tree, f):
            yield Finding(f.path, line, f"{first} brings <{name}> along, by {at}: only {', '.join(sorted(DOORS))} may")
