"""canary.py - the numbers of planted bugs: each in one table, each somewhere in the code.

A number that two people took would plant two bugs at once; a row whose bug is gone is noticed by
tools/canaries, but only when it is run. This is instant.
"""
import re
import tomllib

from lintlib import Finding, rule

TABLE = "tests/canaries/canaries.toml"
PLANTED = re.compile(r"BZ_BROKEN|T_BROKEN")


def planted(f):
    """(line, number) of each planted bug in the file."""
    code = f.code
    for i, t in enumerate(code[:-3]):
        if t.kind == "ident" and PLANTED.fullmatch(t.text) and code[i - 1].text != "define":
            if code[i + 1].text == "(" and code[i + 2].kind == "number":
                yield t.line, int(code[i + 2].text)


@rule("canary", "every planted bug has its row in tests/canaries/canaries.toml, and every row its bug")
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
        for line, n in planted(f):
            if n not in numbers:
                yield Finding(f.path, line, f"planted bug {n} has no row in {TABLE}: no net is held to it")
    if tree.whole:
        found = {n for p in tree.all if p.endswith((".c", ".h")) for _, n in planted(tree.file(p))}
        for n in sorted(numbers - found):
            yield Finding(TABLE, row_line(tree, n), f"canary {n} is planted nowhere: BZ_BROKEN({n}) is gone")


def row_line(tree, n):
    for i, line in enumerate(tree.file(TABLE).lines, 1):
        if re.match(rf"number\s*=\s*{n}\b", line):
            return i
    return 1
