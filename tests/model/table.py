#!/usr/bin/env python3
"""table.py - what `make model` found, one line a test: executions, walls, how far, CPU seconds.

    table.py BUILD        BUILD/tests.xml is what tools/run-tests left there
"""
import re
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

ROW = re.compile(r"^(?:ok  |FAIL) +(\S+) +(\d+) +(\d+) +(.+?) +(\d+\.\d+) s", re.M)


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__, end="")
        return 0 if "--help" in sys.argv or "-h" in sys.argv else 2
    results = Path(sys.argv[1]) / "tests.xml"
    if not results.exists():
        sys.exit(f"table: {results} is not there; make model")
    rows = [row for case in xml.parse(results).iter("testcase")
            for row in ROW.findall(case.findtext("system-out") or "")]
    print(f"{'test':<68} {'executions':>10} {'pruned':>9}  {'search':<18} {'CPU s':>6}")
    for name, executions, pruned, verdict, seconds in sorted(rows):
        print(f"{name:<68} {executions:>10} {pruned:>9}  {verdict:<18} {seconds:>6}")
    print(f"{len(rows)} tests, {sum(int(r[1]) for r in rows)} executions, "
          f"{sum(float(r[4]) for r in rows):.1f} s of CPU")
    return 0


if __name__ == "__main__":
    sys.exit(main())
