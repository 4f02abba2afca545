"""mix.py - every public operation that waits is played by the random mixes (tests/support/mix).

The operations are read from the headers:
  a call        marked BLITZ_SUSPENDS, or one that says that it blocks the calling thread
  a future      a function that initializes a struct whose first member is a blitz_future, or that returns one
  a macro       under a comment whose `Suspends:` is not "never"
The mixes play an operation if their code names it. tests/support/mix/unplayed.toml lists the operations that they do
not play, with the reason and the tests that run them instead.
"""
import fnmatch
import re
import tomllib

import shape
import where
from lintlib import Finding, rule

MIX = ("tests/support/mix/", "tests/stress/mix_stress.c")
TABLE = "tests/support/mix/unplayed.toml"
FUTURE = re.compile(r"typedef struct \w+ \{\s*blitz_future future;.*?\}\s*(\w+);", re.S)
MACRO = re.compile(r"/\*(?P<comment>(?:[^*]|\*(?!/))*)\*/\s*\n#define (?P<name>(?:blitz|BLITZ)_\w+)\(", re.S)


def futures(tree):
    """The names of the structs that are futures."""
    found = set()
    for f in tree.c_files("include/"):
        found |= {m.group(1) for m in FUTURE.finditer(re.sub(r"/\*.*?\*/", "", f.text, flags=re.S))}
    return found


def waits(call, structs):
    if where.marked(call.f, call.line) or "blocks the calling thread" in where.flat(call.comment):
        return True
    makes = call.name.endswith("_init") and call.params and structs & set(call.params[0][0])
    return bool(makes) or "blitz_future" in call.result


def macros(tree):
    for f in tree.c_files("include/"):
        for m in MACRO.finditer(f.text):
            text = where.flat(m.group("comment"))
            found = re.search(r"Suspends:\s*(\w+)", text)
            if found and found.group(1) != "never":
                yield m.group("name"), f.path, f.text.count("\n", 0, m.start("name")) + 1


def operations(tree):
    """name -> (path, line) of each public operation that waits."""
    structs, found = futures(tree), {}
    for c in shape.calls(tree):
        if waits(c, structs):
            found.setdefault(c.name, (c.f.path, c.line))
    for name, path, line in macros(tree):
        found.setdefault(name, (path, line))
    return found


def played(tree):
    return {t.text for f in tree.c_files(*MIX) for t in f.code if t.kind == "ident"}


def excuses(tree):
    if not tree.has(TABLE):
        return []
    return tomllib.loads(tree.file(TABLE).text).get("unplayed", [])


def patterns(row):
    calls = row.get("calls")
    return calls if isinstance(calls, list) and all(isinstance(p, str) for p in calls) else []


@rule("mix-covers", "every public operation that waits is played by tests/support/mix, or its table says why not")
def mix_covers(tree):
    if not tree.whole:
        return
    rest = {name: place for name, place in operations(tree).items() if name not in played(tree)}
    excused = set()
    for row in excuses(tree):
        if not patterns(row) or len(str(row.get("why", "")).split()) < 4:
            yield Finding(TABLE, 1, f"an entry needs `calls`, a list, and `why`, a sentence: {row}")
        for pattern in patterns(row):
            hits = fnmatch.filter(rest, pattern)
            excused |= set(hits)
            if not hits:
                yield Finding(TABLE, 1, f"`{pattern}` excuses nothing: the mixes play it, or there is no such operation")
    for name, (path, line) in rest.items():
        if name not in excused:
            yield Finding(path, line, f"{name} waits, and no mix plays it: add a verb to tests/support/mix, "
                                      f"or a reason to {TABLE}")
