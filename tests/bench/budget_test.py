#!/usr/bin/env python3
"""Tests of tools/budget with a program whose counts are known: a round has four instructions in a loop, one of them locked."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
#include <stdlib.h>
int main(int argc, char **argv)
{
    long n = atol(argv[2]), word = 0;
    (void)argc;
    __asm__ volatile("1: lock incq %1\\n nop\\n decq %0\\n jnz 1b" : "+r"(n), "+m"(word));
    return 0;
}
"""
ROW = '[[op]]\nname = "loop"\nrounds = [100, 1100]\nbudget = {budget}\nlocked = {locked}\n'


@unittest.skipUnless(shutil.which("valgrind") and shutil.which("objdump") and
                     os.uname().machine == "x86_64", "needs valgrind, objdump and an x86_64")
class Budget(unittest.TestCase):
    def setUp(self):
        self.dir = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.dir)
        source = self.dir / "loop.c"
        source.write_text(PROGRAM)
        subprocess.run([os.environ.get("CC", "cc"), "-O2", source, "-o", self.dir / "loop"], check=True)

    def run_budget(self, budget, locked, *more):
        (self.dir / "table.toml").write_text(ROW.format(budget=budget, locked=locked))
        return subprocess.run([ROOT / "tools" / "budget", "--table", self.dir / "table.toml", "--program",
                               self.dir / "loop", "--json", self.dir / "counts.json", *more],
                              capture_output=True, text=True)

    def test_counts_one_round(self):
        done = self.run_budget(4, 1)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        counts = json.loads((self.dir / "counts.json").read_text())[0]
        self.assertAlmostEqual(counts["instructions"], 4, delta=0.2)
        self.assertAlmostEqual(counts["locked"], 1, delta=0.01)

    def test_fails_when_instructions_exceed_the_budget(self):
        done = self.run_budget(3, 1)
        self.assertEqual(done.returncode, 1)
        self.assertIn("OVER", done.stdout)

    def test_fails_when_locked_instructions_exceed_the_budget(self):
        self.assertEqual(self.run_budget(4, 0).returncode, 1)

    def test_fails_when_a_goal_is_not_met_if_asked(self):
        self.assertEqual(self.run_budget(4, "1\ngoal = 3").returncode, 0)
        done = self.run_budget(4, "1\ngoal = 3", "--goals")
        self.assertEqual(done.returncode, 1)
        self.assertIn("behind their goals: ", done.stdout)
        self.assertEqual(self.run_budget(4, "1\ngoal = 5", "--goals").returncode, 0)

    def test_writes_budgets(self):
        self.run_budget(100, 9, "--write")
        table = (self.dir / "table.toml").read_text()
        self.assertIn("budget = 4\n", table)
        self.assertIn("locked = 1.0\n", table)


if __name__ == "__main__":
    sys.exit(unittest.main())
