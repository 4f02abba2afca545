"""canary.py - the numbers of planted bugs: each in one table, each somewhere in a patch or in a net.

A number that two people took would plant two bugs at once; a row whose bug is gone is noticed by
tools/canaries, but only when it is run. This is instant. The library has no planted bug: planted.py says where they are.
"""
import re
import tomllib

import planted
from lintlib import Finding, rule

TABLE = "tests/canaries/canaries.toml"
PLANTED = re.compile(r"BZ_BROKEN|T_BROKEN")
ADDED = re.compile(r"^\+.*\bBZ_BROKEN\((\d+)\)", re.M)


def in_code(f):
    """(line, number) of each planted bug in the file."""
    code = f.code
    for i, t in enumerate(code[:-3]):
        if t.kind == "ident" and PLANTED.fullmatch(t.text) and code[i - 1].text != "define":
            if code[i + 1].text == "(" and code[i + 2].kind == "number":
                yield t.line, int(code[i + 2].text)


def check_patches(tree, numbers, found):
    for path in tree.all:
        if not path.startswith(planted.FOLDER + "/") or not path.endswith(".patch"):
            continue
        m = planted.NAME.search(path)
        if m is None:
            yield Finding(path, 1, "a planted bug is named NNN-what-it-breaks.patch, after its number")
            continue
        n, text = int(m.group(1)), tree.file(path).text
        found.add(n)
        if n not in numbers:
            yield Finding(path, 1, f"planted bug {n} has no row in {TABLE}: no net is held to it")
        if n not in map(int, ADDED.findall(text)):
            yield Finding(path, 1, f"the patch adds no BZ_BROKEN({n})")
        if not re.match(r"\S.{10,}\n\nCaught by: \S", text):
            yield Finding(path, 1, "a patch begins with a sentence, what it breaks, and \"Caught by: NETS.\"")


@rule("canary", "planted bugs are patches of tests/canaries that apply; each has its row in canaries.toml, and every row its bug")
def canary(tree):
    rows = []
    if tree.has(TABLE):
        try:
            rows = tomllib.loads(tree.file(TABLE).text).get("canary", [])
        except tomllib.TOMLDecodeError as e:
            yield Finding(TABLE, 1, f"{e}")
            return
    numbers = {r.get("number") for r in rows}
    for f in tree.c_files("src/", "tests/", "include/"):
        for line, n in in_code(f):
            if not f.under("tests/"):
                yield Finding(f.path, line, f"planted bug {n} in the library: make it a patch in {planted.FOLDER}")
            elif n not in numbers:
                yield Finding(f.path, line, f"planted bug {n} has no row in {TABLE}: no net is held to it")
    if not tree.whole:
        return
    found = {n for p in tree.all if p.endswith((".c", ".h")) for _, n in in_code(tree.file(p))}
    yield from check_patches(tree, numbers, found)
    for n in sorted(numbers - found):
        yield Finding(TABLE, row_line(tree, n), f"canary {n} is planted nowhere")
    try:
        planted.plant(tree.root)
    except planted.Stale as e:
        yield Finding(TABLE, 1, str(e))


def row_line(tree, n):
    for i, line in enumerate(tree.file(TABLE).lines, 1):
        if re.match(rf"number\s*=\s*{n}\b", line):
            return i
    return 1
