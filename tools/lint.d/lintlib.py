"""lintlib.py - the library of all checks of tools/lint.

A Tree is the set of files under a root. A File gives its text, its lines and, for C, its tokens:
comments and strings are tokens of their own, so no check ever mistakes a word in a comment for a
call. A check is a generator function with the @rule decorator; it yields findings.

Two ways to be excused, both with a reason that a reviewer can read:
  a comment   `lint: allow RULE: why`, on the line itself or on the line above it
  a table     tools/lint.d/exceptions.toml, for whole files; an unused entry is a finding
"""
import bisect
import fnmatch
import os
import re
import subprocess
import tomllib

RULES = {}  # name -> Rule, in the order of definition


class Rule:
    def __init__(self, name, says, fn, tool):
        self.name, self.says, self.fn, self.tool = name, says, fn, tool


def rule(name, says, tool=None):
    """Register a check. `says` is its line in --list; `tool` the program it calls, if any."""
    def register(fn):
        RULES[name] = Rule(name, says, fn, tool)
        return fn
    return register


class Finding:
    """One finding: place, rule, problem and remedy."""

    def __init__(self, path, line, text, warning=False):
        self.path, self.line, self.text, self.warning = path, line, text, warning
        self.rule = None

    def __str__(self):
        kind = f"{self.rule} (warning)" if self.warning else self.rule
        return f"{self.path}:{self.line}: {kind}: {self.text}"


TOKEN = re.compile(
    r"""(?P<comment>//(?:[^\n\\]|\\.)*|/\*.*?(?:\*/|\Z))
      | (?P<string>(?:u8|[LuU])?"(?:[^"\\\n]|\\.)*")
      | (?P<char>[LuU]?'(?:[^'\\\n]|\\.)*')
      | (?P<ident>[A-Za-z_]\w*)
      | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
      | (?P<punct>->|\#\#|[^\s\w])""",
    re.X | re.S,
)


class Token:
    __slots__ = ("kind", "text", "line", "end_line")

    def __init__(self, kind, text, line, end_line):
        self.kind, self.text, self.line, self.end_line = kind, text, line, end_line


class File:
    def __init__(self, root, path):
        self.root, self.path = root, path  # path is relative, with slashes
        self.name = os.path.basename(path)
        self.text = self._read()
        self._tokens = self._lines = None

    def _read(self):
        try:
            with open(os.path.join(self.root, self.path), "rb") as f:
                data = f.read()
        except OSError:
            return ""
        return "" if b"\0" in data[:4096] else data.decode("utf-8", "replace")

    @property
    def lines(self):
        """lines[n] is line n + 1 of the file."""
        if self._lines is None:
            self._lines = self.text.split("\n")
        return self._lines

    @property
    def is_c(self):
        return self.path.endswith((".c", ".h", ".S"))

    @property
    def is_shell(self):
        return self.path.endswith((".sh", ".bash")) or re.match(
            r"#!.*\b(sh|bash|dash)\b", self.lines[0]) is not None

    @property
    def is_python(self):
        return self.path.endswith(".py") or re.match(r"#!.*\bpython3?\b", self.lines[0]) is not None

    @property
    def layer(self):
        """The folder under src/ ("base", "os", ...), or the first folder of the path."""
        parts = self.path.split("/")
        return parts[1] if parts[0] == "src" and len(parts) > 2 else parts[0]

    def under(self, *prefixes):
        return self.path.startswith(prefixes)

    @property
    def tokens(self):
        """All tokens of a C file, comments included, in order."""
        if self._tokens is None:
            starts = [0] + [m.end() for m in re.finditer(r"\n", self.text)]
            self._tokens = []
            for m in TOKEN.finditer(self.text):
                first = bisect.bisect_right(starts, m.start())
                last = first + m.group().count("\n")
                self._tokens.append(Token(m.lastgroup, m.group(), first, last))
        return self._tokens

    @property
    def code(self):
        """The tokens without the comments."""
        return [t for t in self.tokens if t.kind != "comment"]

    @property
    def comments(self):
        return [t for t in self.tokens if t.kind == "comment"]

    @property
    def prose(self):
        """(line number, text) of what a person wrote as words: for C the comments and strings, with
        the code left out, else every line."""
        if not self.is_c:
            return list(enumerate(self.lines, 1))
        found = []
        for t in self.tokens:
            if t.kind in ("comment", "string"):
                found += [(t.line + i, s) for i, s in enumerate(t.text.split("\n"))]
        return found

    def includes(self):
        """(line, opening quote or bracket, name) of each #include."""
        for n, line in enumerate(self.lines, 1):
            m = re.match(r'\s*#\s*include\s*([<"])([^>"]+)', line)
            if m:
                yield n, m.group(1), m.group(2)

    def allowed(self, line, name):
        """Is `name` excused at that line by a `lint: allow` comment?"""
        for n in (line, line - 1):
            if 1 <= n <= len(self.lines):
                m = ALLOW.search(self.lines[n - 1])
                if m and m.group(1) == name and len(m.group(2).split()) >= 2:
                    return True
        return False


ALLOW = re.compile(r"lint: allow ([\w-]+):?\s*(.*?)\s*(?:\*/|$)")


# The sins that the lint's own tests plant, and what only looks like one to a careless check.
PLANTED = re.compile(r"tests/lint/[^/]+/")


class Tree:
    def __init__(self, root, only=None):
        self.root = os.path.abspath(root)
        self.all = self._list()
        self._files = {}
        self.all = [p for p in self.all if not PLANTED.match(p)]
        chosen = self.all if only is None else [p for p in self.all if p in only]
        self.files = [self.file(p) for p in chosen]
        self.exceptions = self._exceptions()
        self.whole = only is None

    def _list(self):
        if os.path.exists(os.path.join(self.root, ".git")):
            out = subprocess.run(
                ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                cwd=self.root, capture_output=True, text=True)
            if out.returncode == 0:
                paths = sorted(set(filter(None, out.stdout.split("\0"))))
                return [p for p in paths if os.path.isfile(os.path.join(self.root, p))]
        found = []
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(d for d in folders if d not in ("build", ".git", "__pycache__"))
            for n in sorted(names):
                found.append(os.path.relpath(os.path.join(folder, n), self.root))
        return found

    def file(self, path):
        if path not in self._files:
            self._files[path] = File(self.root, path)
        return self._files[path]

    def has(self, path):
        return path in self._files or os.path.isfile(os.path.join(self.root, path))

    def c_files(self, *prefixes):
        return [f for f in self.files if f.is_c and (not prefixes or f.under(*prefixes))]

    def _exceptions(self):
        path = os.path.join(self.root, "tools/lint.d/exceptions.toml")
        if not os.path.exists(path):
            return []
        with open(path, "rb") as f:
            rows = tomllib.load(f).get("allow", [])
        for row in rows:
            for key in ("rule", "path", "why"):
                if not isinstance(row.get(key), str) or not row[key]:
                    raise ValueError(f"tools/lint.d/exceptions.toml: an entry lacks `{key}`: {row}")
            row["used"] = False
        return rows

    def excused(self, finding):
        f = self.file(finding.path)
        if f.allowed(finding.line, finding.rule):
            return True
        for row in self.exceptions:
            if row["rule"] != finding.rule:
                continue
            if not fnmatch.fnmatch(finding.path, row["path"]):
                continue
            line = f.lines[finding.line - 1] if finding.line <= len(f.lines) else ""
            if re.search(row.get("line", ""), line):
                row["used"] = True
                return True
        return False


def run(tree, names):
    """Run the named rules over the tree; the findings that stand, in order of place."""
    found = []
    for name in names:
        for finding in RULES[name].fn(tree):
            finding.rule = name
            if not tree.excused(finding):
                found.append(finding)
    if tree.whole:
        for row in tree.exceptions:
            if row["rule"] in names and not row["used"]:
                stale = Finding("tools/lint.d/exceptions.toml", 1,
                                f"nothing needs the exception {row['rule']} for {row['path']}: remove it")
                stale.rule = row["rule"]
                found.append(stale)
    once = {str(f): f for f in found}  # a header is seen from several files
    return sorted(once.values(), key=lambda f: (f.path, f.line, f.rule))
