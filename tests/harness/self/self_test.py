#!/usr/bin/env python3
"""The harness's own tests: run cases that end in every way a case can, and look at what is said.

A script and not a test program of the harness, because a broken harness would pass its own cases.

usage: self_test.py --bin=FOLDER [--sanitize=LIST] [--patience=SECONDS] [UNITTEST-ARGUMENT...]
FOLDER holds harness_self, harness_empty and harness_twice. Without further arguments all classes are
run, a few at a time: most of what they do is to wait.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parent / "self.c"
BIN = Path()
SANITIZE = ""
PATIENCE_S = 120  # no run here takes nearly as long, unless it hangs
CLASSES_AT_A_TIME = 3
SUMMARY = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped")


class Result:
    """The output of a run, split into one block for each case."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        self.blocks = {}
        name = None
        for line in out.splitlines():
            if opening := re.match(r"(PASS|FAIL|SKIP) (\S+)", line):
                name = opening[2]
                self.blocks.setdefault(name, []).append("")
            elif SUMMARY.fullmatch(line):
                name = None
            if name:
                self.blocks[name][-1] += line + "\n"

    def __getitem__(self, name):
        assert len(self.blocks.get(name, [])) == 1, f"{name} is not reported once:\n{self.out}"
        return self.blocks[name][0]

    def summary(self):
        last = self.out.splitlines()[-1]
        return tuple(int(n) for n in SUMMARY.fullmatch(last).groups())

    def again(self, name, nth=0):
        """The command that repeats a failure."""
        return re.search(r"again with: (.*)", self.blocks[name][nth])[1].split()


def environment(extra=None):
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith("BLITZ_") or k == "BLITZ_BROKEN"}  # the bug that we are to find
    return clean | (extra or {})


def run(*arguments, program="harness_self", env=None):
    command = [str(BIN / program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S,
                          env=environment(env), check=False, errors="replace")
    return Result(done.returncode, done.stdout, done.stderr)


class Passing(unittest.TestCase):
    def test_all_pass_and_the_last_line_counts_them(self):
        r = run("pass.*")
        names = run("--list", "pass.*").out.split()
        self.assertEqual((r.code, r.summary()), (0, (len(names), 0, 0)), r.out)
        self.assertEqual(r.err, "")

    def test_quiet_unless_asked(self):
        r = run("pass.notes_are_shown", "pass.returns")
        self.assertIn("note: 3 things were found\n     note: and a second line\n", r.out)
        self.assertNotIn("words that are shown", r.out)
        self.assertNotIn("pass.returns", r.out)

    def test_verbose_names_and_shows(self):
        r = run("-v", "pass.notes_are_shown", "pass.returns")
        self.assertRegex(r["pass.returns"], r"^PASS pass.returns   \d+ ms\n$")
        self.assertIn("     | words that are shown with -v alone\n", r["pass.notes_are_shown"])

    def test_many_at_once_say_the_same(self):
        r = run("pass.*", "fail.*", "--jobs=8")
        one = run("pass.*", "fail.*")
        self.assertEqual(r.summary(), one.summary())
        self.assertEqual(sorted(r.blocks), sorted(one.blocks))

    def test_a_skip_says_why_and_fails_nothing(self):
        r = run("skip.*")
        self.assertEqual((r.code, r.summary()), (0, (0, 0, 1)))
        self.assertIn("SKIP skip.says_why   this machine has 0 moons\n", r.out)


class Failing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.r = run("fail.*", "--seed=0x2a")

    def says(self, name, *parts):
        block = self.r[name]
        for part in parts:
            self.assertIn(part, block)

    def test_exit_status_and_count(self):
        names = run("--list", "fail.*").out.split()
        self.assertEqual(self.r.code, 1)
        self.assertEqual(self.r.summary(), (0, len(names), 0), self.r.out)

    def test_form(self):
        line = next(i for i, text in enumerate(SOURCE.read_text().splitlines(), 1)
                    if "CHECK_EQ(got, -EPIPE)" in text)
        self.assertEqual(
            self.r["fail.eq"],
            f"FAIL fail.eq         tests/harness/self/self.c:{line}\n"
            f"     got == -EPIPE   got 0, want -32 (EPIPE)\n"
            f"     again with: {BIN}/harness_self fail.eq --seed=0x2a\n")

    def test_every_place_is_that_of_a_check(self):
        lines = SOURCE.read_text().splitlines()
        for name in self.r.blocks:
            place = re.search(r"   (\S+):(\d+)$", self.r[name].splitlines()[0])
            if name == "fail.thread_that_cannot_be_made":
                self.assertEqual(place[1], "tests/harness/threads.c")
                continue
            self.assertEqual(place[1], "tests/harness/self/self.c")
            self.assertRegex(lines[int(place[2]) - 1], r"CHECK|FAIL", name)

    def test_values(self):
        self.says("fail.check", "answer == 42   is false", "     | words before the end\n")
        self.says("fail.and_says_more", " is false", "     | words after the check\n")
        self.says("fail.eq_unsigned", "got 4096 (0x1000), want 255 (0xff)")
        self.says("fail.ne", "5 != 5", "got 5, want anything but 5")
        self.says("fail.lt", "3 < 2", "got 3, want < 2")
        self.says("fail.ge_mixed", "-1 >= 1u", "got -1 (EPERM), want >= 1")
        self.says("fail.pointer", "(void *)0xbeef == NULL", "got 0xbeef, want NULL")
        self.says("fail.real", "got 0.30000000000000004, want 0.29999999999999999")
        self.says("fail.boolean", "is_open == (bool)true", "got false, want true")
        self.says("fail.text", r'got "the quick\x09brown fox", want "the quick brown fox"',
                  "differ at byte 9")
        self.says("fail.text_missing", 'got NULL, want "something"')
        self.says("fail.words", "there were 7 of them")

    def test_long_text_is_shown_around_the_difference(self):
        self.says("fail.long_text", "differ at byte 500 of 600 and 600\n",
                  '\n     got  ..."' + 24 * "x" + "y" + 23 * "x" + '"...\n',
                  '\n     want ..."' + 48 * "x" + '"...\n')

    def test_bytes_are_shown_around_the_difference(self):
        self.says("fail.bytes", "2 of 100 bytes differ, the first at 50 (0x32)",
                  "got  000030  30 31 ff fe 34", "want 000030  30 31 32 33 34",
                  "\n                        ^^ ^^\n")
        self.assertNotIn("000010", self.r["fail.bytes"])

    def test_from_anywhere(self):
        self.says("fail.on_a_thread", "got 2, want -1", "while: thread 2 of four\n")
        self.says("fail.on_a_foreign_stack", "got 1, want 2")
        self.says("fail.in_a_signal_handler", "signo == 0", "got 10 (0xa), want 0")
        self.says("fail.in_a_child_process", "got 7, want 8")
        self.says("fail.at_exit", "got 5, want 6")

    def test_the_first_of_several_tells(self):
        block = self.r["fail.on_all_threads_at_once"]
        self.assertEqual(block.count("index == 1000"), 1)
        self.assertRegex(block, r"got [0-7], want 1000")

    def test_thread_that_cannot_be_made(self):
        self.says("fail.thread_that_cannot_be_made", "cannot start thread 1 of 2: EAGAIN")

    def test_aborts(self):
        self.says("fail.no_abort", "return_quietly(NULL) aborts", "it returned, want SIGABRT")
        self.says("fail.abort_with_other_words", 'want SIGABRT and "others"',
                  "it said: before: these: after")

    def test_watch_is_the_last_one(self):
        self.says("fail.watched", "while: round 17\n")
        self.assertNotIn("round 16", self.r["fail.watched"])

    def test_stop(self):
        r = run("fail.*", "--stop")
        self.assertEqual((r.code, r.summary()), (1, (0, 1, 0)))


class Seeds(unittest.TestCase):
    VALUE = re.compile(r"t_random\(\) == 0u   got (\d+)")

    def value(self, result, nth=0):
        return int(self.VALUE.search(result.blocks["fail.by_seed"][nth])[1])

    def test_the_printed_command_repeats_the_numbers(self):
        first = run("fail.by_seed")
        done = subprocess.run(first.again("fail.by_seed"), capture_output=True, text=True,
                              timeout=PATIENCE_S, env=environment(), check=False)
        again = Result(done.returncode, done.stdout, done.stderr)
        self.assertEqual(self.value(first), self.value(again))

    def test_each_run_has_another(self):
        self.assertNotEqual(self.value(run("fail.by_seed")), self.value(run("fail.by_seed")))

    def test_the_same_for_the_same_seed(self):
        first, again = (run("pass.numbers_*", "--seed=7").blocks for _ in range(2))
        strip = [re.sub(r"\d+ ms", "", b["pass.numbers_follow_from_the_seed"][0])
                 for b in (first, again)]
        self.assertEqual(strip[0], strip[1])
        self.assertIn("seed 7:", strip[0])

    def test_repeat_gives_each_its_own(self):
        r = run("fail.by_seed", "--repeat=5", "--seed=99")
        self.assertEqual(r.summary(), (0, 5, 0))
        values = [self.value(r, i) for i in range(5)]
        self.assertEqual(len(set(values)), 5)
        self.assertEqual(self.value(run("fail.by_seed", "--seed=99")), values[0])
        third = r.again("fail.by_seed", 3)
        self.assertEqual(self.value(run(*third[1:])), values[3])

    def test_environment(self):
        env = {"BLITZ_TEST_SEED": "0x1234"}
        self.assertIn("--seed=0x1234\n", run("fail.by_seed", env=env).out)
        self.assertIn("--seed=0x5\n", run("fail.by_seed", "--seed=5", env=env).out)
        r = run("pass.returns", env={"BLITZ_TEST_SEED": "twelve"})
        self.assertEqual(r.code, 2)
        self.assertIn("BLITZ_TEST_SEED wants a number, not 'twelve'", r.err)


class Amounts(unittest.TestCase):
    def amount(self, *arguments, env=None):
        r = run("pass.scaled_*", *arguments, env=env)
        return int(re.search(r"a million becomes (\d+)", r.out)[1])

    def test_full_or_less_under_a_sanitizer(self):
        full = self.amount()
        self.assertTrue(full < 1000000 if SANITIZE else full == 1000000)

    def test_quick_is_a_tenth(self):
        full = self.amount()
        past, future = str(int(time.time()) - 1), str(int(time.time()) + 3600)
        self.assertEqual(self.amount("--quick"), full // 10)
        self.assertEqual(self.amount(env={"BLITZ_TEST_QUICK": "1"}), full // 10)
        self.assertEqual(self.amount(env={"BLITZ_TEST_UNTIL": past}), full // 10)
        self.assertEqual(self.amount(env={"BLITZ_TEST_UNTIL": future}), full)
        self.assertEqual(self.amount(env={"BLITZ_TEST_QUICK": "0"}), full)

    def test_the_command_to_repeat_is_as_quick(self):
        self.assertIn(" --quick\n", run("fail.eq", "--quick").out)
        self.assertIn(" --quick\n", run("fail.eq", env={"BLITZ_TEST_UNTIL": "1"}).out)


class Crashing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.r = run("crash.*")

    def test_count(self):
        names = run("--list", "crash.*").out.split()
        self.assertEqual((self.r.code, self.r.summary()), (1, (0, len(names), 0)), self.r.out)

    def test_segv(self):
        block = self.r["crash.segv"]
        self.assertIn("the case crashed   SIGSEGV (11) at address 0xdead0\n", block)
        self.assertIn("while: about to crash\n", block)
        self.assertRegex(block, r"#\d+ +(write_through|t_body_crash_segv)\b")
        self.assertIn("again with: ", block)

    def test_abort(self):
        self.assertIn("the case crashed   SIGABRT (6)\n", self.r["crash.aborts"])
        self.assertRegex(self.r["crash.aborts"], r"#\d+ +t_body_crash_aborts\b")

    def test_on_a_foreign_stack(self):
        block = self.r["crash.on_a_foreign_stack"]
        self.assertIn("SIGSEGV (11) at address 0xf1be0", block)
        self.assertRegex(block, r"#\d+ +crash_on_fiber\b")

    def test_stack_overflow(self):
        block = self.r["crash.stack_overflow"]
        self.assertIn("SIGSEGV (11) at address 0x", block)
        self.assertRegex(block, r"#0 +dig\b")
        self.assertLess(len(block.splitlines()), 20)

    def test_killed(self):
        self.assertIn("the case was killed   SIGKILL (9), not by the harness",
                      self.r["crash.killed"])


class Hanging(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.r = run("hang.*", "--time-limit=2", "--jobs=5")

    def test_count(self):
        names = run("--list", "hang.*").out.split()
        self.assertEqual((self.r.code, self.r.summary()), (1, (0, len(names), 0)), self.r.out)

    def test_a_loop_is_named(self):
        block = self.r["hang.spins"]
        self.assertIn("the case does not end   given 2 s; its stacks:\n", block)
        self.assertRegex(block, r"#\d+ +spin_for_ever\b")
        self.assertRegex(block, r"while: the spin \(thread \d+\)\n")
        self.assertIn("--time-limit=2\n", block)

    def test_every_thread_is_shown(self):
        block = self.r["hang.three_threads"]
        self.assertEqual(len(re.findall(r"^     thread \d+", block, re.M)), 4, block)
        self.assertEqual(len(re.findall(r"#\d+ +spin_for_ever\b", block)), 1, block)
        self.assertEqual(len(re.findall(r"#\d+ +wait_for_lock\b", block)), 2, block)
        self.assertEqual(len(re.findall(r"#\d+ +t_threads\b", block)), 1, block)

    def test_a_deaf_thread_is_said_to_be_deaf(self):
        block = self.r["hang.deaf"]
        self.assertIn("blocks signals or does not answer\n", block)
        if shutil.which("gdb"):
            self.assertRegex(block, r"\| #\d+ .*\bspin_for_ever\b")
        else:
            self.assertIn("gdb is not here", block)

    def test_a_stopped_case_is_ended(self):
        self.assertIn("the case does not end", self.r["hang.stopped"])

    def test_endless_output_is_cut(self):
        # How long 16 MiB take is the machine's affair: the limit must not come first.
        r = run("hang.prints_without_end", "--time-limit=120")
        block = r["hang.prints_without_end"]
        self.assertIn("the case prints without end   stopped at 16 MiB\n", block)
        self.assertLess(len(block), 100000)

    def test_no_tool_is_needed(self):
        r = run("hang.spins", "--time-limit=1", env={"PATH": "/nowhere"})
        self.assertRegex(r["hang.spins"], r"#\d+ +spin_for_ever\b")

    @unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")
    def test_gdb_when_asked(self):
        r = run("hang.spins", "--time-limit=1", "--gdb")
        self.assertRegex(r["hang.spins"], r"\| #\d+ .*\bspin_for_ever\b")


class Leaving(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.r = run("exit.*", "leak.*", "--jobs=8")

    def test_early_exit(self):
        for name, code in (("quietly", 0), ("at_once", 0), ("with_status", 3)):
            self.assertIn(f"the case did not return   exit({code}) was called in it\n",
                          self.r[f"exit.{name}"])

    def test_exit_status_after_the_end(self):
        self.assertIn("exit status 5", self.r["exit.badly_after_the_end"])

    def test_descriptor(self):
        self.assertRegex(self.r["leak.fd"], r"leaks file descriptor \d+ \(/dev/null\)\n")

    def test_thread(self):
        self.assertIn("leaks 1 thread: still running\n", self.r["leak.thread"])
        self.assertRegex(self.r["leak.thread"], r"#\d+ +sleep_for_ever\b")

    def test_processes(self):
        self.assertIn("leaks a child process", self.r["leak.child"])
        self.assertIn("leaks a child process", self.r["leak.zombie"])
        self.assertIn("leaks a process, started by a child of its own", self.r["leak.orphan"])

    def test_memory(self):
        if "address" in SANITIZE:
            self.assertIn("leaks memory\n", self.r["leak.memory"])
            self.assertIn("12345 byte(s)", self.r["leak.memory"])
        else:
            self.assertNotIn("leak.memory", self.r.blocks)


class Sanitizers(unittest.TestCase):
    def needs(self, kind):
        if kind not in SANITIZE:
            self.skipTest(f"built without -fsanitize={kind}")

    def report(self, case, words):
        r = run(case)
        self.assertEqual(r.summary(), (0, 1, 0), r.out)
        self.assertRegex(r[case], r"a sanitizer's report   .*" + words)
        self.assertIn("again with", r[case])

    def test_address(self):
        self.needs("address")
        self.report("sanitize.heap_use_after_free", "AddressSanitizer: heap-use-after-free")

    def test_undefined(self):
        self.needs("undefined")
        self.report("sanitize.overflow", "signed integer overflow")

    def test_race(self):
        self.needs("thread")
        self.report("sanitize.data_race", "ThreadSanitizer: data race")


class CommandLine(unittest.TestCase):
    def refused(self, words, *arguments, **more):
        r = run(*arguments, **more)
        self.assertEqual(r.code, 2, r.out)
        self.assertIn(words, r.err)
        self.assertEqual(r.out, "")

    def test_nonsense_is_refused(self):
        self.refused("there is no option '--sed=1'", "--sed=1")
        self.refused("there is no option '-x'", "-x")
        self.refused("no case matches 'nothing.*'", "pass.*", "nothing.*")
        self.refused("no case matches 'pass.return'", "pass.return")
        self.refused("--seed wants a number, not 'x'", "--seed=x")
        self.refused("--seed wants a number, not '-1'", "--seed=-1")
        self.refused("--seed wants a value", "--seed")
        self.refused("--repeat wants at least 1", "--repeat=0")
        self.refused("--repeat wants a number, not ''", "--repeat=")
        self.refused("--jobs wants at most", "--jobs=99999999")
        self.refused("--time-limit wants a number of seconds above 0", "--time-limit=0")
        self.refused("--time-limit wants a number of seconds", "--time-limit=soon")
        self.refused("--time-limit wants a number of seconds", "--time-limit=nan")
        self.refused("--here runs one case", "--here")

    def test_programs_without_sense_are_refused(self):
        self.refused("there are no cases", program="harness_empty")
        self.refused("two cases are called twin.is_called_like_its_brother",
                     program="harness_twice")

    def test_list(self):
        names = run("--list").out.splitlines()
        declared = re.findall(r"^TEST(?:_LIMIT)?\((\w+), (\w+)", SOURCE.read_text(), re.M)
        self.assertEqual(names, [".".join(pair) for pair in declared])
        self.assertEqual(run("--list", "skip.*", "pass.returns").out.splitlines(),
                         ["pass.returns", "skip.says_why"])
        self.assertRegex(run("--list", "-v", "skip.*").out,
                         r"^skip.says_why   tests/harness/self/self.c:\d+\n$")

    def test_several_filters(self):
        r = run("-v", "pass.returns", "pass.*_limit_*", "pass.returns")
        self.assertEqual(sorted(r.blocks), ["pass.has_a_limit_of_its_own", "pass.returns"])

    def test_help(self):
        r = run("--help")
        self.assertEqual(r.code, 0)
        for option in ("--list", "--seed", "--repeat", "--jobs", "--quick", "--time-limit",
                       "--stop", "--gdb", "--here", "--verbose"):
            self.assertIn(option, r.out)

    def test_here(self):
        self.assertEqual(run("--here", "pass.returns").code, 0)
        r = run("--here", "fail.watched")
        self.assertEqual(r.code, 1)
        self.assertRegex(r.err, r"FAIL .*self.c:\d+\n     false   is false\n     while: round 17\n")


def children_of(pid):
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Interrupting(unittest.TestCase):
    def end_by(self, signo):
        """Start a hanging case, end the parent by a signal; the case must not live on."""
        with subprocess.Popen([BIN / "harness_self", "hang.spins"], env=environment(),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as parent:
            until = time.monotonic() + PATIENCE_S
            while not (cases := children_of(parent.pid)) and time.monotonic() < until:
                time.sleep(0.01)  # lint: allow test-sleep: between two looks
            self.assertTrue(cases)
            parent.send_signal(signo)
            self.assertEqual(parent.wait(timeout=PATIENCE_S), -signo)
            while any(map(is_running, cases)) and time.monotonic() < until:
                time.sleep(0.01)  # lint: allow test-sleep: between two looks
            self.assertFalse(any(map(is_running, cases)))

    def test_interrupt(self):
        self.end_by(signal.SIGINT)

    def test_terminate(self):
        self.end_by(signal.SIGTERM)

    def test_kill(self):
        self.end_by(signal.SIGKILL)


def run_class(name):
    done = subprocess.run([sys.executable, __file__, *sys.argv[1:], name], text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, f"{name}: {done.stdout}"


def run_all():
    names = [c.__name__ for c in unittest.TestCase.__subclasses__() if c.__module__ == "__main__"]
    with concurrent.futures.ThreadPoolExecutor(CLASSES_AT_A_TIME) as pool:
        results = list(pool.map(run_class, names))
    print("".join(out for _, out in results))
    return any(code != 0 for code, _ in results) or not results


def main():
    global BIN, SANITIZE, PATIENCE_S  # pylint: disable=global-statement
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, type=Path, help="where harness_self is")
    parser.add_argument("--sanitize", default="", help="what it was built with")
    parser.add_argument("--patience", default=PATIENCE_S, type=float, metavar="SECONDS",
                        help="after which a run of harness_self counts as hanging")
    ours, rest = parser.parse_known_args()
    BIN, SANITIZE, PATIENCE_S = ours.bin.resolve(), ours.sanitize, ours.patience
    if not rest:
        sys.exit(run_all())
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
