#!/usr/bin/env python3
"""orders.py - the reduction of the search loses nothing: programs of model tests, run with and without.

    orders.py PROGRAM...

A model program explores a deferral only where something asked for it (lib/explore.c). With --all-orders
it explores every one. The number of different executions (--distinct) of each test must be the same; the
second way only runs into more walls. Tests that must fail stop at the first failure and are left out, and so are
those that are too large to be searched completely either way. Exit code: 0 the same, 1 not, 77 all are too large.
"""
import re
import subprocess
import sys

ROW = re.compile(r"^ok +(\S+) +(\d+) +(\d+) +complete", re.M)


def counts(program, *options):
    done = subprocess.run([program, "--budget=0.8", "--whole", "--distinct", *options], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"orders: {program} {' '.join(options)} failed:\n{done.stdout}{done.stderr}")
    return {name: (int(n), int(pruned)) for name, n, pruned in ROW.findall(done.stdout)}


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__, end="")
        return 0 if len(sys.argv) > 1 else 2
    passed = failed = saved = 0
    for program in sys.argv[1:]:
        reduced = counts(program)
        every = counts(program, "--all-orders", *reduced) if reduced else {}
        for name in reduced.keys() & every.keys():
            is_same = reduced[name][0] == every[name][0]
            passed += is_same
            failed += not is_same
            saved += every[name][1] - reduced[name][1]
            if not is_same:
                print(f"{name}: {reduced[name][0]} executions, without the reduction {every[name][0]}")
    print(f"the reduction saved {saved} runs into walls")
    print(f"{passed} passed, {failed} failed")
    if not passed and not failed:
        print("SKIP: all are too large to be searched in every order")
        return 77
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
