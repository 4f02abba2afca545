"""Reads bench/NAME.toml, the description of a benchmark, and refuses what it cannot mean.

A description is data, so that a new benchmark is a table and not a script: the contenders (how each
is built and started) and the cases (what is measured, in which unit, by whom). Every mistake is told
with the file and the key; an unknown key is a mistake too, because a misspelt one would be ignored
for years.
"""

import tomllib
from dataclasses import dataclass, field

OURS = "blitz"
AGAIN = "blitz again"  # ours a second time: the A/A row
HOW = {"runs": (int, 5), "seconds": ((int, float), 0.01), "more": (int, 1)}


class SpecError(Exception):
    """The description of a benchmark says something that cannot be meant."""


@dataclass
class Contender:
    name: str
    run: list  # argv; {placeholders} as in build.py
    label: str = ""
    setup: list = field(default_factory=list)  # groups of tools/setup
    build: list = field(default_factory=list)  # commands, each an argv
    targets: list = field(default_factory=list)  # CMake targets of preset bench


@dataclass
class Case:
    name: str
    unit: str
    title: str = ""
    better: str = "lower"
    peers: list = field(default_factory=list)
    target: bool = True  # ahead or level is promised; else it is shown for information
    count: str = ""  # the case whose instructions stand for this one's; "" is itself
    count_ops: int = 20000  # operations counted under callgrind; 0: one is too much to be counted
    counted: bool = False  # count instructions, however far apart ours and the peers are
    goal: float = 0  # our best round is to reach this; 0: no goal
    times: dict = field(default_factory=dict)  # {peer: how many times better ours is to be}
    beside: str = ""  # a case before this one, to compare ours with ours
    speedup: float = 0  # how many times better than beside this one is to be
    slow: bool = False  # a third of the rounds
    within: str = ""  # the case whose run prints this figure, too; "" is a run of its own


@dataclass
class Plot:
    """Cases whose figures make a line: plot.py."""

    name: str
    title: str
    x: str
    y: str
    cases: list
    at: list  # numbers, one for each case


@dataclass
class Spec:
    name: str
    title: str
    about: str
    contenders: dict
    cases: list
    plots: list = field(default_factory=list)
    runs: int = 0  # rounds and seconds unless the caller says; 0: those of tools/bench
    seconds: float = 0
    more: int = 3  # noisy cases get up to so many times the rounds

    def peers(self):
        return [c for c in self.contenders.values() if c.name != OURS]

    def case(self, name):
        return next((c for c in self.cases if c.name == name), None)


def _fields(kind, where, table, name=None):
    """Build a dataclass from a TOML table; complain about keys it does not have."""
    known = kind.__dataclass_fields__
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise SpecError(f"{where}: unknown key '{unknown[0]}'")
    if name is not None:
        table = dict(table, name=name)
    try:
        return kind(**table)
    except TypeError as missing:
        raise SpecError(f"{where}: {str(missing).split('() ')[-1]}") from None


def _argv(where, command):
    """A command is written as one string or as a list of words."""
    words = command.split() if isinstance(command, str) else command
    if not isinstance(words, list) or not words or not all(isinstance(w, str) for w in words):
        raise SpecError(f"{where}: a command is a string or a list of words, not empty")
    return words


def _contender(where, name, table):
    c = _fields(Contender, where, table, name)
    c.run = _argv(f"{where}.run", c.run)
    c.build = [_argv(f"{where}.build", b) for b in c.build]
    c.label = c.label or name
    return c


def _check_case(where, case, contenders, names):
    if case.better not in ("lower", "higher"):
        raise SpecError(f"{where}: better is 'lower' or 'higher', not '{case.better}'")
    if any(ch.isspace() for ch in case.name) or not case.name:
        raise SpecError(f"{where}: the name is an argument and a word of the output: no spaces")
    for peer in case.peers:
        if peer not in contenders or peer == OURS:
            raise SpecError(f"{where}: no peer '{peer}' in [contender]")
    for peer in case.times:
        if peer not in case.peers:
            raise SpecError(f"{where}: times names no peer of the case: '{peer}'")
    if case.beside and case.beside not in names[:names.index(case.name)]:
        raise SpecError(f"{where}: beside names no case before it: '{case.beside}'")
    if bool(case.beside) != bool(case.speedup):
        raise SpecError(f"{where}: beside and speedup go together")
    if case.within and case.within not in names[:names.index(case.name)]:
        raise SpecError(f"{where}: within names no case before it: '{case.within}'")
    if case.counted and not case.count_ops:
        raise SpecError(f"{where}: counted, and count_ops is 0")
    if case.count and case.count not in names:
        raise SpecError(f"{where}: count names no case: '{case.count}'")


def _plot(where, table, names):
    plot = _fields(Plot, where, table)
    for case in plot.cases:
        if case not in names:
            raise SpecError(f"{where}: no case '{case}'")
    if len(plot.cases) != len(plot.at) or not plot.at:
        raise SpecError(f"{where}: {len(plot.cases)} cases at {len(plot.at)} places")
    if not all(isinstance(x, (int, float)) and x >= 0 for x in plot.at):
        raise SpecError(f"{where}: a place is a number, 0 or more")
    return plot


def _how_much(where, key, value):
    kind, least = HOW[key]
    if not isinstance(value, kind) or value < least:
        raise SpecError(f"{where}: {key} is a number, at least {least}")
    return value


def _check_within(where, case, cases):
    """It is measured by the run of another: that one has a run, and all of its contenders."""
    other = next((c for c in cases if c.name == case.within), case)
    if other.within:
        raise SpecError(f"{where}: '{case.within}' has no run of its own")
    for peer in case.peers:
        if peer not in other.peers:
            raise SpecError(f"{where}: '{peer}' does not run in '{case.within}'")


def parse(text, name, where):
    """Text of a description -> Spec."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{where}: {error}") from None
    unknown = sorted(set(data) - {"title", "about", "contender", "case", "plot"} - set(HOW))
    if unknown:
        raise SpecError(f"{where}: unknown key '{unknown[0]}'")
    contenders = {
        n: _contender(f"{where}: contender.{n}", n, t)
        for n, t in data.get("contender", {}).items()
    }
    if OURS not in contenders:
        raise SpecError(f"{where}: no [contender.{OURS}]")
    cases = [_fields(Case, f"{where}: case {i + 1}", t) for i, t in enumerate(data.get("case", []))]
    if not cases:
        raise SpecError(f"{where}: no [[case]]")
    names = [c.name for c in cases]
    for case in cases:
        if names.count(case.name) > 1:
            raise SpecError(f"{where}: two cases are named '{case.name}'")
        _check_case(f"{where}: case {case.name}", case, contenders, names)
        if case.within:
            _check_within(f"{where}: case {case.name}", case, cases)
        case.title = case.title or case.name
    plots = [_plot(f"{where}: plot {i + 1}", t, names) for i, t in enumerate(data.get("plot", []))]
    how = {key: _how_much(where, key, data[key]) for key in HOW if key in data}
    return Spec(name, data.get("title", name), data.get("about", "").strip(), contenders, cases, plots,
                **how)


def load(bench_dir, name):
    path = bench_dir / f"{name}.toml"
    if not path.is_file():
        there = ", ".join(names(bench_dir)) or "none"
        raise SpecError(f"no benchmark '{name}' (there are: {there})")
    return parse(path.read_text(encoding="utf-8"), name, f"bench/{name}.toml")


OTHERS = {"budget"}  # tables of other tools: tools/budget


def names(bench_dir):
    return sorted(p.stem for p in bench_dir.glob("*.toml") if p.stem not in OTHERS)
