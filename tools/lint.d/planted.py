"""planted.py - the planted bugs: tests/canaries/NNN-NAME.patch, and how they are applied to sources.

A patch begins with a sentence: what it breaks. Then comes the list of nets that must catch it, and a unified diff. The
code that it adds is in conditions on BZ_BROKEN(NNN), so one tree can have all of them. Patches are applied in the order
of their numbers. A hunk may have moved, but its lines must be there; otherwise the error names patch, file and hunk.
"""
import os
import re

FOLDER = "tests/canaries"
NAME = re.compile(r"(\d{3})-[a-z0-9-]+\.patch$")
HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")
FUZZ = 2  # lines of context that an earlier patch may have changed


class Stale(Exception):
    """A hunk that does not apply: what and where."""


def names(root):
    folder = os.path.join(root, FOLDER)
    return sorted(n for n in os.listdir(folder) if n.endswith(".patch")) if os.path.isdir(folder) else []


def parse(text):
    """[(path, [(first line, [(sign, line)], header)])] of a patch."""
    files, left = [], [0, 0]
    for line in text.split("\n"):
        if left[0] > 0 or left[1] > 0:
            sign, rest = line[:1] or " ", line[1:]  # an empty line is context without its blank
            files[-1][1][-1][1].append((sign, rest))
            left = [left[0] - (sign != "+"), left[1] - (sign != "-")]
        elif line.startswith("+++ "):
            files.append((re.sub(r"^b/", "", line[4:].split("\t")[0]), []))
        elif m := HUNK.match(line):
            files[-1][1].append((int(m.group(1)), [], line))
            left = [int(m.group(2) or 1), int(m.group(3) or 1)]
    return files


def place(lines, old, about):
    """Where the old lines are, nearest to line `about`; None: nowhere."""
    found = [i for i in range(len(lines) - len(old) + 1) if lines[i:i + len(old)] == old]
    return min(found, key=lambda i: abs(i - about)) if found else None


def trimmed(body, fuzz):
    """The hunk without up to `fuzz` lines of context at each end: (how many were left out in front, the rest)."""
    front = next(i for i, (sign, _) in enumerate(body) if sign != " ")
    back = next(i for i, (sign, _) in enumerate(reversed(body)) if sign != " ")
    front, back = min(front, fuzz), min(back, fuzz)
    return front, body[front:len(body) - back]


def apply(name, text, sources):
    """Apply a patch to `sources`, {path: lines}; a path that is missing is asked for by sources[path]."""
    for path, hunks in parse(text):
        shift = 0
        for first, whole, header in hunks:
            for fuzz in range(FUZZ + 1):
                front, body = trimmed(whole, fuzz)
                old = [line for sign, line in body if sign != "+"]
                new = [line for sign, line in body if sign != "-"]
                at = place(sources[path], old, first - 1 + front + shift)
                if at is not None:
                    break
            else:
                raise Stale(f"{FOLDER}/{name} does not apply to {path}: no place for hunk {header}: mend the patch")
            sources[path][at:at + len(old)] = new
            shift = at - (first - 1 + front) + len(new) - len(old)


class Sources(dict):
    """The files of a tree, read when they are first asked for."""

    def __init__(self, root):
        super().__init__()
        self.root = root

    def __missing__(self, path):
        try:
            with open(os.path.join(self.root, path), encoding="utf-8") as f:
                self[path] = f.read().split("\n")
        except OSError:
            raise Stale(f"no {path} in the tree, but a planted bug for it") from None
        return self[path]


def plant(root):
    """{path: text} of every source with all planted bugs in it."""
    sources = Sources(root)
    for name in names(root):
        with open(os.path.join(root, FOLDER, name), encoding="utf-8") as f:
            apply(name, f.read(), sources)
    return {path: "\n".join(lines) for path, lines in sources.items()}
