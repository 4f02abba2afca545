"""blitz.py - gdb commands for blitz: tasks, procs, and parked stacks.

    (gdb) source tools/gdb/blitz.py
    (gdb) info blitz tasks               every task: id, kind, state, proc, age, name, what it waits for
    (gdb) info blitz procs               every proc: what its machine is at, and its queues
    (gdb) blitz bt 7                     the backtrace of task 7, parked or running
    (gdb) blitz bt 7 full                further arguments are those of `backtrace`
    (gdb) blitz-bt fiber->ctx            the same for a context of your own: a struct bz_ctx

All of it works on a live process and on a core file: nothing is called and no register is changed. Types come
from debug information. Every library that is not stripped has the types needed here (two of its files are
compiled with -g). Frames have names and lines if the other code was compiled with -g.

How a parked stack is unwound. A parked context is three words: stack pointer, frame pointer, address.
The usual trick is to write them into the registers, which a core file does not allow and a live process
may not survive. This lays an unwinder over the newest frame instead, one that says "my caller is over
there", shows the backtrace from that caller on, and takes it off again.
"""
import gdb
import gdb.unwinder

TASKS_SHOWN = 1000  # without "all"

# Per architecture as gdb names it: stack pointer, frame pointer, program counter.
REGISTERS = {
    "i386:x86-64": ("rsp", "rbp", "rip"),
    "aarch64": ("sp", "x29", "pc"),
    "riscv:rv64": ("sp", "fp", "pc"),
}


# ---- reading the runtime's structures ----

def debug():
    """The constants and the list of runtimes: src/runtime/runtimes.c."""
    try:
        return gdb.parse_and_eval("bz_debug")
    except gdb.error as error:
        raise gdb.GdbError(f"blitz: no debug information of blitz here ({error}). Is the program "
                           "loaded, linked with blitz, and not stripped?") from error


def pointer_to(value, name):
    return value.cast(gdb.lookup_type(name).pointer())


def text_of(value):
    """A char pointer or array as text, or its beginning; "" if it leads nowhere."""
    text = ""
    try:
        while len(text) < 80 and int(value[len(text)]) != 0:  # not at once: a core may end behind it
            text += chr(int(value[len(text)]) & 0xff)
    except gdb.error:
        pass
    return text


def runtimes():
    at = debug()["runtimes"]
    while int(at) != 0:
        yield at.dereference()
        at = at["older"]


def procs_of(runtime):
    return [runtime["procs"][i] for i in range(int(runtime["proc_count"]))]


def machines_of(runtime):
    """Every machine there is; m["proc"] is 0 in one that has lost its proc, or has none yet."""
    machines = runtime["machines"]
    for i in range(int(machines["count"])):
        if int(machines["slot"][i]) != 0:
            yield machines["slot"][i].dereference()


def objects_of(slab):
    """The addresses of all objects in the slab, used or free: src/base/slab_chunk.h."""
    kind, chunk = slab["kind"], slab["newest"]
    first, size = int(kind["first"]), int(kind["size"])
    while int(chunk) != 0:
        for i in range(int(chunk["fresh"])):
            yield int(chunk) + first + size * i
        chunk = chunk["older"]


def task_headers(runtime):
    refs, word = int(debug()["word_refs"]), gdb.lookup_type("unsigned long")
    homes = [proc["tasks"] for proc in procs_of(runtime)] + [runtime["tasks"]["outside"]]
    task = gdb.lookup_type("struct bz_task").pointer()
    for home in homes:
        slabs = home["slab"]
        for c in range(slabs.type.range()[1] + 1):
            for address in objects_of(slabs[c]):
                if int(gdb.Value(address).cast(word.pointer()).dereference()) & refs:
                    yield gdb.Value(address).cast(task).dereference()


# ---- one task ----

class Task:
    """Describe a task header, by the same table as src/observe/view.c."""

    def __init__(self, header, current):
        known = debug()
        word = int(header["word"])
        life = word & int(known["word_life"])
        self.header = header
        self.id = int(header["id"])
        self.kind = text_of(header["ops"]["kind"])
        self.name = text_of(header["name"])
        self.cancelled = bool(word & int(known["word_cancelled"]))
        self.proc, self.machine, self.why = "", current.get(int(header.address)), ""
        if life == int(known["complete"]):
            self.state = "ended"
        elif life == int(known["scheduled"]):
            self.state = "ready" if word & int(known["word_started"]) else "new"
        elif self.machine is not None:
            self.state = "running"
            self.proc = proc_name(self.machine)
        else:
            self.state, self.why = self.waits(known, life == int(known["idle"]))

    def waits(self, known, is_idle):
        wait = int(self.header["wait"])
        tag = wait & int(known["wait_mask"])
        place = gdb.Value(wait - tag)
        try:
            if wait == 0:
                return ("waiting", "wake") if is_idle else ("ready", "")
            if tag == int(known["wait_child"]):
                return "waiting", f"join of task {int(pointer_to(place, 'struct bz_task')['id'])}"
            if tag == int(known["wait_job"]):
                return "waiting", "join of a fork"
            if tag == int(known["wait_future"]):
                future = pointer_to(place, "struct blitz_future")
                return "waiting", text_of(future["ops"]["name"]) or "await"
            node = pointer_to(place, "struct bz_wait")
            is_open = int(node["arbiter"]) == int(known["wait_open"])
            return ("waiting", text_of(node["what"])) if is_open else ("ready", "")
        except gdb.error:
            return "waiting", "(not readable)"

    def age(self, runtime):
        """Seconds since its spawn, or None."""
        born, now = int(self.header["born"]), int(runtime["clock"])
        if self.state == "ended" or born == 0:
            return None
        return max(0, now - born) * (1 << int(debug()["age_shift"])) / 1e9

    def line(self, runtime):
        age = self.age(runtime)
        name = f'"{self.name}"' if self.name else "-"
        return "%8d  %-6s %-8s %4s  %8s  %-20s %s" % (
            self.id, self.kind, self.state, self.proc,
            "-" if age is None else f"{age:.2f} s", name,
            self.why + (" (cancelled)" if self.cancelled else ""))


def proc_name(machine):
    return str(int(machine["proc"]["index"])) if int(machine["proc"]) != 0 else "none"


def thread_name(machine):
    try:
        return f" on thread {text_of(machine['thread']['name'])}" if int(machine["thread"]) else ""
    except gdb.error:
        return ""


def tasks_of(runtime):
    current = {int(m["current"]): m for m in machines_of(runtime) if int(m["current"]) != 0}
    for header in task_headers(runtime):
        yield Task(header, current)


# ---- unwinding what is parked ----

class FrameId:
    def __init__(self, sp, pc):
        self.sp = sp
        self.pc = pc


class ParkedUnwinder(gdb.unwinder.Unwinder):
    """The caller of the newest frame is the parked context."""

    def __init__(self, names, newest_sp, saved):
        super().__init__("blitz parked context")
        self.names = names
        self.newest_sp = newest_sp
        self.saved = saved

    def __call__(self, pending):
        sp = pending.read_register(self.names[0])
        if int(sp) != self.newest_sp:
            return None
        # As if it stood right below the parked one: gdb believes no caller that lies further down.
        below = gdb.Value(int(self.saved[0]) - 16).cast(sp.type)
        info = pending.create_unwind_info(FrameId(below, pending.read_register(self.names[2])))
        for name, value in zip(self.names, self.saved):
            info.add_saved_register(name, value)
        return info


def register_names():
    try:
        frame = gdb.newest_frame()
    except gdb.error as error:
        raise gdb.GdbError(f"blitz: {error}: run the program, or load a core file") from error
    names = REGISTERS.get(frame.architecture().name())
    if names is None:
        raise gdb.GdbError(f"no register names for {frame.architecture().name()}")
    return frame, names


def backtrace_of(saved, arguments):
    """The text of `backtrace ARGUMENTS` from sp, fp, pc on."""
    frame, names = register_names()
    unwinder = ParkedUnwinder(names, int(frame.read_register(names[0])), saved)
    gdb.unwinder.register_unwinder(None, unwinder, replace=True)
    gdb.invalidate_cached_frames()
    try:
        text = gdb.execute("backtrace " + " ".join(arguments), to_string=True)
    finally:
        gdb.frame_unwinders[:] = [u for u in gdb.frame_unwinders if u is not unwinder]
        gdb.invalidate_cached_frames()
    return "".join(line for line in text.splitlines(True) if not line.startswith("#0 "))


def context_of(text):
    """The struct bz_ctx an expression means: itself, or what it points at."""
    value = gdb.parse_and_eval(text)
    if value.type.strip_typedefs().code == gdb.TYPE_CODE_PTR:
        value = value.dereference()
    try:
        return [value[name] for name in ("sp", "fp", "pc")]
    except gdb.error as error:
        raise gdb.GdbError(f"{text} is no struct bz_ctx: {error}") from error


def thread_on(stack):
    """The thread that stands on a stack, or None: that whose stack pointer lies in it."""
    low, high = int(stack["low"]), int(stack)
    before = gdb.selected_thread()
    try:
        for thread in gdb.selected_inferior().threads():
            thread.switch()
            frame, names = register_names()
            if low <= int(frame.read_register(names[0])) < high:
                return thread
    finally:
        before.switch()
    return None


# ---- commands ----

class BlitzBacktrace(gdb.Command):
    """blitz-bt CONTEXT [ARGUMENTS OF backtrace]: the stack of a parked struct bz_ctx."""

    def __init__(self):
        super().__init__("blitz-bt", gdb.COMMAND_STACK, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        words = gdb.string_to_argv(argument)
        if not words:
            raise gdb.GdbError("usage: blitz-bt CONTEXT [ARGUMENTS OF backtrace]")
        saved = context_of(words[0])
        if int(saved[2]) == 0:
            raise gdb.GdbError(f"{words[0]} is not parked: it runs, or was never left")
        gdb.write(backtrace_of(saved, words[1:]))


class TaskBacktrace(gdb.Command):
    """blitz bt ID [ARGUMENTS OF backtrace]: where a task stands, parked or running."""

    def __init__(self):
        super().__init__("blitz bt", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        words = gdb.string_to_argv(argument)
        if not words or not words[0].isdigit():
            raise gdb.GdbError("usage: blitz bt ID [ARGUMENTS OF backtrace]; ids: info blitz tasks")
        found = [t for runtime in runtimes() for t in tasks_of(runtime) if t.id == int(words[0])]
        if not found:
            raise gdb.GdbError(f"no task {words[0]}: info blitz tasks lists them")
        for task in found:  # a stolen forked job has the id of the task that forked it
            gdb.write(f"task {task.id} ({task.kind}): {task.state} {task.why}\n")
            self.show(task, words[1:])

    def show(self, task, arguments):
        if task.state == "running":
            self.show_running(task, arguments)
        elif int(task.header["stack"]) == 0:
            gdb.write("it stands on no stack: it has not begun, has ended, or is stackless\n")
        else:
            context = task.header["stack"]["ctx"]
            gdb.write(backtrace_of([context[name] for name in ("sp", "fp", "pc")], arguments))

    def show_running(self, task, arguments):
        thread = thread_on(task.machine["runner"]) if int(task.machine["runner"]) != 0 else None
        if thread is None:
            gdb.write("no thread stands on its stack just now: look at all of them\n")
            return
        before = gdb.selected_thread()
        gdb.write(f"on thread {thread.num} ({thread.name})\n")
        try:
            thread.switch()
            gdb.write(gdb.execute("backtrace " + " ".join(arguments), to_string=True))
        finally:
            before.switch()


class InfoTasks(gdb.Command):
    """info blitz tasks [all]: every task of every runtime; the first thousand, or all."""

    def __init__(self):
        super().__init__("info blitz tasks", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        most = None if argument.strip() == "all" else TASKS_SHOWN
        for runtime in runtimes():
            gdb.write(f"runtime \"{text_of(runtime['is']['name'])}\"\n")
            gdb.write("      id  kind   state    proc       age  name                 waits for\n")
            count = 0
            for task in tasks_of(runtime):
                count += 1
                if most is None or count <= most:
                    gdb.write(task.line(runtime).rstrip() + "\n")
            if most is not None and count > most:
                gdb.write(f"... and {count - most} more: info blitz tasks all\n")


class InfoProcs(gdb.Command):
    """info blitz procs: every proc of every runtime, what its machine is at, and its queues."""

    def __init__(self):
        super().__init__("info blitz procs", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        for runtime in runtimes():
            gdb.write(f"runtime \"{text_of(runtime['is']['name'])}\"\n")
            for proc in procs_of(runtime):
                gdb.write(self.line(runtime, proc) + "\n")
            for machine in machines_of(runtime):
                if int(machine["current"]) != 0 and int(machine["is_stray"]) != 0:
                    gdb.write(f"no proc: running task {int(machine['current']['id'])}"
                              f"{thread_name(machine)}; it was too long at it\n")

    def line(self, runtime, proc):
        index, word, known = int(proc["index"]), int(proc["state"]), debug()
        state = word & (1 << int(known["proc_bits"])) - 1
        if state not in (int(known["proc_asleep"]), int(known["proc_held"])):
            at = "no machine"
        else:
            machine = runtime["machines"]["slot"][word >> int(known["proc_bits"])].dereference()
            if state == int(known["proc_asleep"]):
                at = "asleep"
            elif int(machine["current"]) != 0:
                at = f"running task {int(machine['current']['id'])}"
            else:
                at = "looking for work"
            at += thread_name(machine)
        first = int(proc["timer_first"])
        mask = int(debug()["ring_mask"])
        queued = int(proc["ring"]["tail"]) - int(proc["ring"]["head"]) & mask
        return (f"proc {index}: {at}; queued {queued}, "
                f"next {int(int(proc['next']) != 0)}; "
                f"{'no timer' if first == (1 << 64) - 1 else 'a timer is armed'}")


class Prefix(gdb.Command):
    def __init__(self, name, doc):
        self.__doc__ = doc
        super().__init__(name, gdb.COMMAND_STATUS, prefix=True)


Prefix("info blitz", "info blitz tasks, info blitz procs: what a blitz runtime is doing.")
Prefix("blitz", "blitz bt ID: the backtrace of a task.")
BlitzBacktrace()
TaskBacktrace()
InfoTasks()
InfoProcs()
