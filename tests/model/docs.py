#!/usr/bin/env python3
"""docs.py - the reports quoted in docs/model-checking.md are those the checker prints.

    docs.py PROGRAM --check     compare; exit 1 and a diff if the page is out of date
    docs.py PROGRAM --write     write them into the page (`make model-docs`)

PROGRAM is model_planted. Between `<!-- code NAME -->` and `<!-- end -->` the page has section NAME of
tests/model/planted/planted.c; between `<!-- report NAME -->` and `<!-- end -->` the report on it. Each
report is also replayed by the string it ends with, and must come out the same.
"""
import argparse
import difflib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "model-checking.md"
SOURCE = ROOT / "tests" / "model" / "planted" / "planted.c"
BLOCK = re.compile(r"<!-- (code|report) (\w+) -->\n.*?<!-- end -->", re.S)


def run(program, *args):
    done = subprocess.run([program, *args], capture_output=True, text=True)
    return done.stdout


def report_of(program, name):
    """The report of a planted bug, without the line of the table that follows it."""
    out = run(program, f"planted.{name}", "--report")
    found = re.search(r"^FAIL .*?^  again with: [^\n]*\n", out, re.M | re.S)
    if found is None:
        sys.exit(f"docs: planted.{name} was not found:\n{out}")
    check_replay(program, name, found[0])
    return found[0]


def check_replay(program, name, report):
    string = re.search(r"--replay=(\S*)$", report, re.M)[1]
    again = run(program, f"planted.{name}", f"--replay={string}")
    plain = lambda text: re.sub(r"^  found after .*\n", "", text, flags=re.M)
    if plain(report) not in plain(again):
        sys.exit(f"docs: --replay={string} shows another execution than planted.{name}:\n{again}")


def code_of(name):
    found = re.search(rf"^/\* ---- {name} ---- \*/\n(.*?)(?=^/\* ---- |\Z)", SOURCE.read_text(),
                      re.M | re.S)
    if found is None:
        sys.exit(f"docs: {SOURCE.name} has no section {name}")
    return found[1].strip() + "\n"


def fill(page, program):
    def block(m):
        kind, name = m[1], m[2]
        text, fence = (code_of(name), "```c") if kind == "code" else (report_of(program, name), "```")
        return f"<!-- {kind} {name} -->\n{fence}\n{text}```\n<!-- end -->"
    return BLOCK.sub(block, page)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("program")
    mode = p.add_mutually_exclusive_group(required=True)
    mode.add_argument("--check", action="store_true")
    mode.add_argument("--write", action="store_true")
    args = p.parse_args()
    old = PAGE.read_text()
    new = fill(old, args.program)
    sections = set(re.findall(r"^/\* ---- (\w+) ---- \*/", SOURCE.read_text(), re.M))
    missing = sections - {name for kind, name in re.findall(r"<!-- (code|report) (\w+) -->", new)
                          if kind == "report"}
    if missing:
        sys.exit(f"docs: {PAGE.name} does not show {', '.join(sorted(missing))}")
    if args.write:
        PAGE.write_text(new)
    elif old != new:
        sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True),
                                                   "the page", "the reports"))
        sys.exit("docs: docs/model-checking.md is out of date: make model-docs")
    print(f"{len(sections)} reports, each replayed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
