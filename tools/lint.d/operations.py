"""operations.py - docs/operations.md: where the logic of each operation is, and whether it exists once.

Every blitz_X_future_init of a public header has a row. The files of a row exist. A row that says "apart" gives a
figure of at least 5 %, and the file says the same at its top.
"""
import re

from lintlib import Finding, rule

PAGE = "docs/operations.md"
INIT = re.compile(r"\bblitz_(\w+)_future_init$")
FILE = re.compile(r"\bsrc/[\w/]+\.c\b")
FORMS = ("request", "await", "apart", "two", "future")
FIGURE = re.compile(r"apart: (\d+ instructions instead of \d+ \((\d+) %\))$")
LEAST = 5  # per cent that a second copy must save


def futures(tree):
    """name -> (path, line) of its declaration"""
    found = {}
    for f in tree.c_files("include/"):
        for t in f.code:
            m = INIT.match(t.text) if t.kind == "ident" else None
            if m:
                found.setdefault(m.group(1), (f.path, t.line))
    return found


def rows(text):
    """(line, names, logic, form)"""
    for n, line in enumerate(text.split("\n"), 1):
        cells = [c.strip() for c in line.split("|")[1:-1]]
        if len(cells) == 3 and cells[0].startswith("`"):
            yield n, re.findall(r"`(\w+)`", cells[0]), cells[1], cells[2]


def top(f):
    """The first comment, as one line."""
    text = f.text.split("*/", 1)[0]
    return " ".join(re.sub(r"^\s*/?\*+\s?", "", line) for line in text.split("\n")).replace("  ", " ")


def form_of(tree, n, logic, form):
    if form.split(":")[0] not in FORMS:
        yield Finding(PAGE, n, f"the form is one of {', '.join(FORMS)}")
    if not form.startswith("apart"):
        return
    m = FIGURE.match(form)
    if m is None or int(m.group(2)) < LEAST:
        yield Finding(PAGE, n, f"a second copy says what it saves, at least {LEAST} %: apart: N instructions instead of M (P %)")
        return
    for path in FILE.findall(logic):
        if tree.has(path) and m.group(1) not in top(tree.file(path)):
            yield Finding(path, 1, f"the top of the file does not say \"{m.group(1)}\", as {PAGE} does")


@rule("operation", "docs/operations.md has every operation with a future; a second copy of its logic says what it saves")
def operation(tree):
    if not tree.whole or not tree.has(PAGE):
        return
    declared, named = futures(tree), set()
    for n, names, logic, form in rows(tree.file(PAGE).text):
        for name in names:
            if name in named:
                yield Finding(PAGE, n, f"{name} has two rows")
            if name not in declared:
                yield Finding(PAGE, n, f"no header declares blitz_{name}_future_init")
            named.add(name)
        for path in FILE.findall(logic):
            if not tree.has(path):
                yield Finding(PAGE, n, f"{path} does not exist")
        yield from form_of(tree, n, logic, form)
    for name, (path, line) in declared.items():
        if name not in named:
            yield Finding(path, line, f"blitz_{name}_future_init has no row in {PAGE}: where is its logic, and does it exist once?")
