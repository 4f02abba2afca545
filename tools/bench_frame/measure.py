"""Runs the programs of a benchmark and collects what they print.

Interleaved: a round runs every contender of every case once, and each round starts with the next contender,
so that disturbances affect all contenders alike and none is always first. One round before the first is
thrown away (caches, page cache, CPU clock).

In front: where it may (root), a measured program gets the highest ordinary priority, so that other
work on the machine disturbs it less. Linux weighs sessions against each other before it looks at the
niceness within one (autogroup), so it gets a session of its own and both are raised. It stays in
the ordinary scheduling class: in a real-time class threads that spin for each other never end.

Line protocol: the program is called as `PROGRAM [args] CASE --seconds=S` (measure for about that
long) or `PROGRAM [args] CASE --ops=N` (do exactly N operations, for callgrind), prints `CASE VALUE`
on a line of its own and ends with status 0. Lines that begin with # are remarks. Where one run has
several figures (the rate and the latencies of one load), the program prints a line for each, and the
description says which case is `within` whose run.
"""

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .spec import AGAIN, OURS

RUN_LIMIT_S = 60
COUNT_LIMIT_S = 120
SLOW = 3  # of a slow case one round in so many is measured, and none to warm up


class RunError(Exception):
    """A program did not deliver: it crashed, hung, or printed something else."""


@dataclass
class Entry:
    """A contender as it takes part: a name and a command."""

    name: str
    argv: list


def entries(spec, shop, case, skipped):
    """The contenders of a case: ours, ours again, the peers that are not skipped."""
    ours = spec.contenders[OURS]
    argv = shop.spell(spec, ours, ours.run)
    found = [Entry(OURS, argv), Entry(AGAIN, argv)]
    for name in case.peers:
        if name not in skipped:
            peer = spec.contenders[name]
            found.append(Entry(name, shop.spell(spec, peer, peer.run)))
    return found


def _step_in_front():
    """Runs in the child. What is not allowed is left."""
    try:
        Path("/proc/self/autogroup").write_text("-20", encoding="ascii")
    except OSError:
        pass
    try:
        os.nice(-20)
    except OSError:
        pass


def _call(argv, limit_s, prepare=None):
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              errors="replace", timeout=limit_s, check=False,
                              start_new_session=True, preexec_fn=prepare)
    except subprocess.TimeoutExpired:
        raise RunError(f"no end after {limit_s} s") from None
    except OSError as error:
        raise RunError(f"{argv[0]}: {error.strerror}") from None
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()[-1]
        raise RunError(f"ended with {done.returncode}: {said}")
    return done


def value_of(output, case_name):
    """The value a program printed for its case."""
    found = []
    for line in output.splitlines():
        words = line.split()
        if words and words[0] == case_name:
            found.append(words[1:])
    if len(found) != 1 or len(found[0]) != 1:
        raise RunError(f"printed {len(found)} lines '{case_name} VALUE' instead of one")
    try:
        value = float(found[0][0])
    except ValueError:
        raise RunError(f"'{found[0][0]}' is no number") from None
    if not 0 < value < float("inf"):
        raise RunError(f"{value} is no figure: it must be above zero")
    return value


def _printed(entry, run_name, seconds):
    """The figures that a program prints for a run."""
    return _call(entry.argv + [run_name, f"--seconds={seconds:g}"], RUN_LIMIT_S,
                 _step_in_front).stdout


def _by_run(plan):
    """{run: [(case, entries)]}: a case that is within another has no run of its own."""
    runs = {}
    for case, who in plan:
        runs.setdefault(case.within or case.name, []).append((case, who))
    return runs


class Sampler:
    """The samples of a run: {case: {contender: [values]}}, and who failed: {case: {peer: why}}.

    plan: [(case, [entries])]. A peer that fails is out of that case from then on; ours failing is
    the end of the run, but for a figure within another case's run: where ours cannot give that, the
    case is left out ({case: why}).
    """

    def __init__(self, plan, seconds, progress):
        self.plan = plan
        self.seconds = seconds
        self.progress = progress
        self.turn = -1  # the warm-up round
        self.samples = {case.name: {e.name: [] for e in who} for case, who in plan}
        self.failed = {case.name: {} for case, _ in plan}
        self.left_out = {}

    def rounds(self, until, cases=None):
        """Measure until so many rounds are done, in all cases or in those of these names."""
        while self.turn < until:
            for run_name, group in _by_run(self.plan).items():
                wanted = cases is None or any(case.name in cases for case, _ in group)
                if wanted and self._is_due(group[0][0]):
                    self._round(run_name, group, until)
            self.turn += 1

    def measured(self):
        """The plan without the cases that were left out."""
        return [(case, who) for case, who in self.plan if case.name not in self.left_out]

    def _is_due(self, case):
        return not case.slow or (self.turn >= 0 and self.turn % SLOW == 0)

    def _round(self, run_name, group, until):
        who = group[0][1]
        start = self.turn % len(who)
        for entry in who[start:] + who[:start]:
            cases = [case for case, each in group if self._takes_part(case, each, entry)]
            if not cases:
                continue
            self.progress(self.turn, until, cases[0], entry)
            try:
                said = _printed(entry, run_name, self.seconds)
            except RunError as error:
                if entry.name in (OURS, AGAIN):
                    raise RunError(f"blitz, case {run_name}: {error}") from None
                for case in cases:
                    self._fail(case, entry, error)
                continue
            for case in cases:
                self._note(case, entry, said)

    def _takes_part(self, case, who, entry):
        return (entry.name in [e.name for e in who] and entry.name not in self.failed[case.name]
                and case.name not in self.left_out)

    def _note(self, case, entry, said):
        try:
            value = value_of(said, case.name)
        except RunError as error:
            self._fail(case, entry, error)
            return
        if self.turn >= 0:
            self.samples[case.name][entry.name].append(value)

    def _fail(self, case, entry, error):
        if entry.name in (OURS, AGAIN):
            if not case.within:
                raise RunError(f"blitz, case {case.name}: {error}")
            self.left_out[case.name] = str(error)
            return
        self.failed[case.name][entry.name] = f"fails: {error}"
        del self.samples[case.name][entry.name]


def _instructions(argv, case_name, ops):
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "callgrind.out"
        done = _call(["valgrind", "--tool=callgrind", "--fair-sched=yes",
                      f"--callgrind-out-file={out}"] + argv + [case_name, f"--ops={ops}"],
                     COUNT_LIMIT_S)
    total = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if not total:
        raise RunError("valgrind printed no count")
    return int(total.group(1))


def can_count():
    return shutil.which("valgrind") is not None


def instructions_per_op(entry, case_name, ops):
    """Start-up and set-up fall out: count N operations and 2N, and take the difference."""
    once = _instructions(entry.argv, case_name, ops)
    twice = _instructions(entry.argv, case_name, 2 * ops)
    return (twice - once) / ops
