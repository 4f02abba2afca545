#!/usr/bin/env python3
"""tools/mutate makes the changes that it says it makes, and tools/testmap reads what gcc leaves behind."""
import importlib.machinery
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOY = """/* a comment: if (a < b) call(); */
#include "toy.h"
#define LIMIT 512
enum { ROW = 3 };

static int toy_add(int a, int b)
{
    BZ_ASSERT(a < b + 7);
    if (a < b && !BZ_BROKEN(3))
        return 0;
    int sum = a + b;
    bz_log(1, "x %d", a < b);
    helper(a, b);
    if (sum >= 10)
        table[sum] = sum;
    return true;
}
enum { MODE = 0644 };
"""


def load(name):
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "tools" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


class Mutate(unittest.TestCase):
    def setUp(self):
        self.tool = load("mutate")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tool.ROOT = pathlib.Path(folder.name)
        (self.tool.ROOT / "toy.c").write_text(TOY)
        self.mutants = self.tool.Source("toy.c").mutants

    def changes(self, line):
        return sorted(m.change() for m in self.mutants if m.line == line)

    def test_constants_have_neighbours_and_large_ones_multiples(self):
        self.assertEqual(self.changes(3), ["512 -> 128", "512 -> 2048"])
        self.assertEqual(self.changes(4), ["3 -> 2", "3 -> 4"])
        self.assertEqual(self.changes(18), ["0644 -> 0151", "0644 -> 03220"])

    def test_comments_assertions_planted_bugs_and_logs_are_left_alone(self):
        for line in (1, 2, 8, 9, 12):
            self.assertEqual(self.changes(line), [])

    def test_calls_and_assignments_are_dropped(self):
        self.assertEqual(self.changes(13), ["dropped: helper(a, b)"])
        self.assertEqual(self.changes(15), ["dropped: table[sum] = sum"])

    def test_conditions_comparisons_and_results_change(self):
        self.assertEqual(self.changes(14), ["10 -> 11", "10 -> 9", ">= -> >", "sum >= 10 -> !(sum >= 10)"])
        self.assertEqual(self.changes(16), ["true -> false"])
        self.assertEqual(self.changes(11), ["+ -> -"])

    def test_a_change_knows_its_function_and_keeps_its_line(self):
        for m in self.mutants:
            self.assertEqual(m.function, "toy_add" if 6 < m.line < 18 else "")
            self.assertEqual(m.apply(TOY).count("\n"), TOY.count("\n"))

    def test_a_sample_does_not_change_when_other_lines_do(self):
        before = {m.key() for m in self.tool.sample(self.mutants, 1, 5)}
        (self.tool.ROOT / "toy.c").write_text("\n\n" + TOY)
        after = {m.key() for m in self.tool.sample(self.tool.Source("toy.c").mutants, 1, 5)}
        self.assertEqual(before, after)
        self.assertNotEqual(before, {m.key() for m in self.tool.sample(self.mutants, 2, 5)})


PROGRAM = """int f(int x) { return x + 1; }
int g(int x) { return x - 1; }
int main(int argc, char **argv) { (void)argv; return argc > 1 ? g(1) : f(-1); }
"""


@unittest.skipUnless(shutil.which("gcc"), "needs gcc")
class Testmap(unittest.TestCase):
    def test_the_functions_that_ran_are_known(self):
        tool = load("testmap")
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name).resolve()
            tool.ROOT = root
            (root / "src").mkdir()
            (root / "src/toy.c").write_text(PROGRAM)
            subprocess.run(["gcc", "--coverage", "-O0", "-c", "src/toy.c", "-o", "toy.o"], cwd=root, check=True)
            subprocess.run(["gcc", "--coverage", "toy.o", "-o", "toy"], cwd=root, check=True)
            notes = tool.read_notes(root / "toy.gcno")
            self.assertEqual({n[1] for n in notes.values()}, {"f", "g", "main"})
            self.assertIn(("src/toy.c", "g", 2, 2), notes.values())
            subprocess.run([root / "toy"], cwd=root, check=True)
            run = {notes[i][1] for i in tool.entered(root / "toy.gcda")}
            self.assertEqual(run, {"f", "main"})


if __name__ == "__main__":
    unittest.main()
