"""size.py - a compass, not a fence: long files and functions are warned of, never refused."""
from lintlib import Finding, rule

FILE_LINES = 600
FUNCTION_LINES = 80


def functions(f):
    """(name, first line, last line) of each function body at file level."""
    depth, name, start, previous = 0, None, 0, []
    for t in f.code:
        if t.text == "{":
            if depth == 0 and ")" in previous[-3:]:
                name, start = called(previous), t.line
            depth += 1
        elif t.text == "}":
            depth -= 1
            if depth == 0 and name is not None:
                yield name, start, t.line
                name = None
            previous = [] if depth == 0 else previous
        if depth == 0 and t.text != "}":
            previous = [] if t.text == ";" else previous + [t.text]


def called(words):
    """The identifier before the last group of parentheses: the function's name."""
    depth = 0
    for i in range(len(words) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(words[i], 0)
        if depth == 0 and words[i] == "(":
            return words[i - 1] if i else "?"
    return "?"


@rule("size", "warns of files over 600 lines and functions over 80")
def size(tree):
    for f in tree.c_files():
        n = f.text.count("\n")
        if n > FILE_LINES:
            yield Finding(f.path, n, f"{n} lines: two nouns may live here", warning=True)
        for name, first, last in functions(f):
            if last - first > FUNCTION_LINES:
                yield Finding(f.path, first, f"{name} has {last - first} lines: let it decide, and hand "
                                             f"the straight-line work to helpers", warning=True)
