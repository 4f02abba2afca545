"""external.py - the checks other programs make: clang-format, clang-tidy, shellcheck, Python.

clang-tidy is slow, so its verdict on a file is cached under build/lint. The key is a hash of the file, its
headers, the flags, the configuration and clang-tidy's version.
"""
import ast
import concurrent.futures
import hashlib
import os
import re
import shutil
import subprocess
import sys

from lintlib import Finding, rule

INCLUDES = ("include", "src", "tests", "tests/harness")
TIDY_FLAGS = ["-std=c11", "-D_GNU_SOURCE=1", "-DBZ_DEBUG=1", "-DBLITZ_BUILDING=1", "-DT_ROOT=\"\"",
              *("-I" + folder for folder in INCLUDES), "-Wall", "-Wextra", "-Wno-unknown-warning-option"]
TIDY_FOLDERS = ("src/", "examples/", "tests/harness/", "tests/unit/", "tests/stress/")


# The analyzer takes nine tenths of the time. It gives up on a function after 75,000 nodes instead of
# its own limit of 225,000, which halves the time (303 to 163 s of CPU) and finds the same over the
# whole tree. `tools/lint --deep`, a stage of `make check-all`, uses the analyzer's own limit.
SHALLOW = ["-Xclang", "-analyzer-config", "-Xclang", "max-nodes=75000"]


def flags(tree):
    return TIDY_FLAGS + ([] if getattr(tree, "deep", False) else SHALLOW)


def missing(program):
    return Finding("tools/lint", 1, f"{program} is not installed: tools/setup installs it")


def have(program):
    return shutil.which(program) is not None


def call(tree, args, stdin=None):
    return subprocess.run(args, cwd=tree.root, input=stdin, capture_output=True, text=True)


@rule("format", "clang-format, as .clang-format has it; --fix writes it", tool="clang-format")
def clang_format(tree):
    if not have("clang-format"):
        yield missing("clang-format")
        return
    paths = [f.path for f in tree.files if f.path.endswith((".c", ".h"))]
    for path, line in misformatted(tree, paths):
        yield Finding(path, line, "not as clang-format has it: tools/lint --fix " + path)
    for f in tree.files:
        if f.path == "docs/style.md":
            yield from examples(tree, f)


def misformatted(tree, paths):
    """(path, first differing line) of each file that clang-format would change."""
    seen = set()
    for i in range(0, len(paths), 64):
        out = call(tree, ["clang-format", "--dry-run", "--style=file"] + paths[i:i + 64])
        for m in re.finditer(r"^(.+?):(\d+):\d+: warning: code should be clang-formatted", out.stderr, re.M):
            if m.group(1) not in seen:
                seen.add(m.group(1))
                yield m.group(1), int(m.group(2))


def examples(tree, f):
    """The examples of the style guide are formatted as the guide says."""
    for m in re.finditer(r"^```c\n(.*?)^```", f.text, re.M | re.S):
        out = call(tree, ["clang-format", "--style=file", "--assume-filename=example.c"], m.group(1))
        if out.stdout != m.group(1):
            pairs = zip(m.group(1).split("\n"), out.stdout.split("\n"))
            off = next((i for i, (a, b) in enumerate(pairs) if a != b), 0)
            line = f.text.count("\n", 0, m.start()) + 2 + off
            yield Finding(f.path, line, "this example is not as clang-format has it: mend one of the two")


def fix(tree):
    """Let clang-format write. Returns the paths that changed."""
    paths = [p for p, _ in misformatted(tree, [f.path for f in tree.files if f.path.endswith((".c", ".h"))])]
    if paths:
        subprocess.run(["clang-format", "-i", "--style=file"] + paths, cwd=tree.root, check=True)
    return paths


@rule("tidy", "clang-tidy over src, examples, unit and stress tests, as .clang-tidy has it", tool="clang-tidy")
def clang_tidy(tree):
    if not have("clang-tidy"):
        yield missing("clang-tidy")
        return
    files = [f for f in tree.files if f.path.endswith(".c") and f.under(*TIDY_FOLDERS)
             and not foreign(f)]
    if not files:
        return
    files.sort(key=lambda f: -len(f.text))  # the longest first, so that no CPU waits for one at the end
    version = call(tree, ["clang-tidy", "--version"]).stdout
    shared = hashlib.sha256((version + " ".join(flags(tree))).encode())
    for path in [p for p in tree.all if p.endswith(".clang-tidy")]:
        shared.update(path.encode() + b"\0" + tree.file(path).text.encode())
    cache = os.path.join(tree.root, "build", "lint")
    os.makedirs(cache, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        for found in pool.map(lambda f: tidy_one(tree, f, shared.copy(), cache), files):
            yield from found


def foreign(f):
    """True for the code of other systems, whose headers are not installed, and of other C libraries."""
    if f.name.startswith(("windows_", "winsock")) or f.path.startswith("tests/windows/"):
        return True
    return f.name in ("windows.c", "iocp.c", "darwin.c", "kqueue_calls.c", "spot_own.c", "find_object.c") or f.name.endswith(("_windows.c", "_darwin.c", "_kqueue.c", "_iocp.c"))


def reached(tree, f):
    """The file and every file of ours that it includes, directly or not."""
    found, left = {f.path: f}, [f]
    while left:
        here = left.pop()
        for _, _, name in here.includes():
            for folder in (os.path.dirname(here.path), *INCLUDES):
                path = os.path.normpath(os.path.join(folder, name))
                if path not in found and tree.has(path):
                    found[path] = tree.file(path)
                    left.append(found[path])
    return [found[path] for path in sorted(found)]


def tidy_one(tree, f, key, cache):
    for each in reached(tree, f):
        key.update(each.path.encode() + b"\0" + each.text.encode() + b"\0")
    kept = os.path.join(cache, key.hexdigest()[:32])
    if os.path.exists(kept):
        with open(kept, encoding="utf-8") as k:
            out = k.read()
    else:
        done = call(tree, ["clang-tidy", "--quiet", f.path, "--"] + flags(tree))
        out = done.stdout + done.stderr if done.returncode else done.stdout
        with open(f"{kept}.{os.getpid()}", "w", encoding="utf-8") as k:
            k.write(out)
        os.replace(f"{kept}.{os.getpid()}", kept)
    return list(tidy_findings(tree, f, out))


def tidy_findings(tree, f, out):
    for m in re.finditer(r"^(.+?):(\d+):\d+: (?:warning|error): (.*)$", out, re.M):
        path = os.path.relpath(os.path.join(tree.root, m.group(1)), tree.root)
        inside = not path.startswith("..") and tree.has(path)
        yield Finding(path if inside else f.path, int(m.group(2)) if inside else 1, m.group(3))


@rule("shell", "shellcheck over every shell script", tool="shellcheck")
def shell(tree):
    scripts = [f.path for f in tree.files if f.text and f.is_shell]
    if scripts and not have("shellcheck"):
        yield missing("shellcheck")
    elif scripts:
        out = call(tree, ["shellcheck", "--format=gcc", "--severity=style"] + scripts)
        for m in re.finditer(r"^(.+?):(\d+):\d+: \w+: (.*)$", out.stdout, re.M):
            yield Finding(m.group(1), int(m.group(2)), m.group(3))


@rule("python", "every Python file compiles, and is of the standard library alone")
def python(tree):
    ours = {part for p in tree.all if p.endswith(".py") for part in p[:-3].split("/")}
    for f in tree.files:
        if not f.text or not f.is_python:
            continue
        try:
            parsed = ast.parse(f.text, f.path)
        except SyntaxError as e:
            yield Finding(f.path, e.lineno or 1, e.msg)
            continue
        for line, name in imports(parsed):
            if name not in sys.stdlib_module_names and name not in ours:
                yield Finding(f.path, line, f"{name} is not in the standard library: the tools need Python alone")


def imports(parsed):
    """(line, top-level name) of each import."""
    for node in ast.walk(parsed):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.lineno, node.module.split(".")[0]
