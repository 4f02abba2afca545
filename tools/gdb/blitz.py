"""blitz.py - gdb commands for stacks that nobody stands on.

    (gdb) source tools/gdb/blitz.py
    (gdb) blitz-bt fiber->ctx            the backtrace of a parked context, live or in a core file
    (gdb) blitz-bt &stack->ctx full      with whatever else `backtrace` takes

A parked context is three words: stack pointer, frame pointer, address. The usual trick is to write
them into the registers, which a core file does not allow and a live process may not survive. This
lays an unwinder over the newest frame instead, one that says "my caller is over there", shows the
backtrace from that caller on, and takes it off again; no register is changed.
"""
import gdb
import gdb.unwinder

# Per architecture as gdb names it: stack pointer, frame pointer, program counter.
REGISTERS = {
    "i386:x86-64": ("rsp", "rbp", "rip"),
    "aarch64": ("sp", "x29", "pc"),
    "riscv:rv64": ("sp", "fp", "pc"),
}


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
        info = pending.create_unwind_info(FrameId(sp, pending.read_register(self.names[2])))
        for name, value in zip(self.names, self.saved):
            info.add_saved_register(name, value)
        return info


def context_of(text):
    """The struct bz_ctx an expression means: itself, or what it points at."""
    value = gdb.parse_and_eval(text)
    if value.type.strip_typedefs().code == gdb.TYPE_CODE_PTR:
        value = value.dereference()
    try:
        return [value[name] for name in ("sp", "fp", "pc")]
    except gdb.error as error:
        raise gdb.GdbError(f"{text} is no struct bz_ctx: {error}") from error


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
        frame = gdb.newest_frame()
        names = REGISTERS.get(frame.architecture().name())
        if names is None:
            raise gdb.GdbError(f"no register names for {frame.architecture().name()}")
        unwinder = ParkedUnwinder(names, int(frame.read_register(names[0])), saved)
        gdb.unwinder.register_unwinder(None, unwinder, replace=True)
        gdb.invalidate_cached_frames()
        try:
            text = gdb.execute("backtrace " + " ".join(words[1:]), to_string=True)
        finally:
            gdb.frame_unwinders[:] = [u for u in gdb.frame_unwinders if u is not unwinder]
            gdb.invalidate_cached_frames()
        gdb.write("".join(line for line in text.splitlines(True) if not line.startswith("#0 ")))


BlitzBacktrace()
