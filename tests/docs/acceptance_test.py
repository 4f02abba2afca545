#!/usr/bin/env python3
"""tools/acceptance catches each way in which its tables can be wrong.

Every test makes a small sound tree, breaks one thing in it and expects the message that
names it: a checker that is only ever shown sound input proves nothing.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "acceptance"
HEADER = "| id | also | asked for | in blitz | shown by | status |\n|---|---|---|---|---|---|\n"
BUG_HEADER = "| # | class | seen in | how ours is tested | tests | status |\n|---|---|---|---|---|---|\n"
SCENARIOS = [f"| T-{n} | | asked | served | open | open |" for n in range(1, 5)]


class Tree:
    """A tree with one sound row of each status."""

    def __init__(self, folder):
        self.root = pathlib.Path(folder)
        self.rows = ["| S0-1 | 001 002 | asked | served | ring.keeps_order | shown |",
                     "| S0-2 | | asked | served | open | open |",
                     "| AC-10.1 | | asked | served | none | differs |"] + SCENARIOS
        self.bugs = [f"| {n} | class | x#1 | tested so | open | open |" for n in range(1, 55)]
        self.bugs[6] = "| 7 | class | x#1 | tested so | ring.bug_07_order | closed |"
        self.source = ("TEST(ring, keeps_order)\n{\n}\n/* TEST(ring, in_a_comment) */\n"
                       "MODEL(ring,\n      bug_07_order)\n{\n}\n")

    def run(self, *args):
        (self.root / "docs").mkdir(exist_ok=True)
        (self.root / "tests").mkdir(exist_ok=True)
        acceptance = self.root / "docs" / "acceptance.md"
        acceptance.write_text("# A\n\n<!-- counts: written by tools/acceptance --write -->\n\n"
                              "<!-- end of counts -->\n\n## Theme\n\n" + HEADER
                              + "\n".join(self.rows) + "\n")
        (self.root / "docs" / "bug-classes.md").write_text(BUG_HEADER + "\n".join(self.bugs) + "\n")
        (self.root / "tests" / "ring_test.c").write_text(self.source)
        if "--as-is" in args:
            args = [a for a in args if a != "--as-is"]
        else:
            self.call("--write")
        return self.call(*args)

    def call(self, *args):
        done = subprocess.run([sys.executable, str(TOOL), "--root", str(self.root), *args],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


class Acceptance(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = Tree(folder.name)

    def refused(self, message):
        code, text = self.tree.run()
        self.assertEqual(code, 1, text)
        self.assertIn(message, text)

    def test_a_sound_tree_passes_and_is_counted(self):
        code, text = self.tree.run()
        self.assertEqual(code, 0, text)
        self.assertIn("7 rows: 5 open, 1 shown, 1 differ (0 of them owe a test)", text)
        self.assertIn("1 of 54 closed", text)

    def test_a_second_row_with_an_id_is_refused(self):
        self.tree.rows.append(self.tree.rows[1])
        self.refused("S0-2 is already on line")

    def test_a_malformed_id_is_refused(self):
        self.tree.rows.append("| S9-1 | | asked | served | open | open |")
        self.refused("malformed id 'S9-1'")

    def test_a_lost_row_is_missed(self):
        self.tree.rows[1] = "| S0-3 | | asked | served | open | open |"
        self.refused("rows are missing: S0-2")

    def test_a_lost_scenario_is_missed(self):
        self.tree.rows.remove(SCENARIOS[2])
        self.refused("rows are missing: T-3")

    def test_an_unknown_status_is_refused(self):
        self.tree.rows[1] = "| S0-2 | | asked | served | open | nearly |"
        self.refused("unknown status 'nearly'")

    def test_a_row_with_a_bar_too_many_is_refused(self):
        self.tree.rows[1] = "| S0-2 | | asked | or | served | open | open |"
        self.refused("7 cells, not 6")

    def test_an_empty_cell_is_refused(self):
        self.tree.rows[1] = "| S0-2 | | | served | open | open |"
        self.refused("S0-2: says nothing")

    def test_also_holds_document_numbers_only(self):
        self.tree.rows[1] = "| S0-2 | 007 | asked | served | open | open |"
        self.refused("lists document numbers")

    def test_shown_without_a_test_is_refused(self):
        self.tree.rows[0] = "| S0-1 | | asked | served | open | shown |"
        self.refused("S0-1 is shown but names no test")

    def test_shown_by_a_test_that_is_gone_is_refused(self):
        self.tree.source = self.tree.source.replace("keeps_order", "keeps_some_order")
        self.refused("S0-1 names a test that is not in the tree: ring.keeps_order")

    def test_a_test_in_a_comment_is_no_test(self):
        self.tree.rows[0] = "| S0-1 | | asked | served | ring.in_a_comment | shown |"
        self.refused("not in the tree: ring.in_a_comment")

    def test_a_test_among_the_samples_of_lint_is_no_test(self):
        sample = self.tree.root / "tests" / "lint" / "rule" / "bad"
        sample.mkdir(parents=True)
        (sample / "sample_test.c").write_text("TEST(ring, sample)\n{\n}\n")
        self.tree.rows[0] = "| S0-1 | | asked | served | ring.sample | shown |"
        self.refused("not in the tree: ring.sample")

    def test_every_test_of_a_list_must_exist(self):
        self.tree.rows[0] = "| S0-1 | | asked | served | ring.keeps_order, ring.gone | shown |"
        self.refused("not in the tree: ring.gone")

    def test_a_script_is_a_test_if_it_is_there(self):
        self.tree.rows[0] = "| S0-1 | | asked | served | tests/ring_test.c | shown |"
        self.assertEqual(self.tree.run()[0], 0)
        self.tree.rows[0] = "| S0-1 | | asked | served | tests/gone | shown |"
        self.refused("not in the tree: tests/gone")

    def test_open_with_a_test_is_refused(self):
        self.tree.rows[1] = "| S0-2 | | asked | served | ring.keeps_order | open |"
        self.refused("S0-2 is open but names a test")

    def test_differs_by_a_test_that_is_gone_is_refused(self):
        self.tree.rows[2] = "| AC-10.1 | | asked | served | ring.gone | differs |"
        self.refused("AC-10.1 names a test that is not in the tree")

    def test_stale_counts_are_refused_and_written(self):
        code, text = self.tree.run("--as-is")
        self.assertEqual(code, 1)
        self.assertIn("out of date", text)
        self.assertEqual(self.tree.call("--write")[0], 0)
        self.assertEqual(self.tree.call()[0], 0)

    def test_a_missing_bug_class_is_missed(self):
        del self.tree.bugs[29]
        self.refused("classes are missing: 30")

    def test_a_class_is_closed_only_by_a_test_of_its_number(self):
        self.tree.bugs[7] = "| 8 | class | x#1 | tested so | ring.bug_07_order | closed |"
        self.refused("ring.bug_07_order does not carry bug_08_")

    def test_a_class_closed_without_a_test_is_refused(self):
        self.tree.bugs[6] = "| 7 | class | x#1 | tested so | open | closed |"
        self.refused("class 7 is closed but names no test")

    def test_a_class_closed_by_a_test_that_is_gone_is_refused(self):
        self.tree.source = "TEST(ring, keeps_order)\n"
        self.refused("class 7 names a test that is not in the tree")

    def test_part_of_a_class_needs_a_test(self):
        self.tree.bugs[6] = "| 7 | class | x#1 | tested so | open | part |"
        self.refused("closed in part but names no test")

    def test_a_bug_test_the_table_does_not_know_is_told(self):
        self.tree.bugs[6] = "| 7 | class | x#1 | tested so | open | open |"
        code, text = self.tree.run()
        self.assertEqual(code, 0)
        self.assertIn("class 7: in the tree, not in the table: ring.bug_07_order", text)
        self.assertEqual(self.tree.call("--name-tests")[0], 0)
        code, text = self.tree.call()
        self.assertEqual(code, 0)
        self.assertNotIn("not in the table", text)
        self.assertIn("| 7 | class | x#1 | tested so | ring.bug_07_order | part |",
                      (self.tree.root / "docs" / "bug-classes.md").read_text())

    def test_a_row_that_rests_on_a_layer_that_is_not_there_is_refused(self):
        self.tree.rows[0] = "| S0-1 | | asked | actor: mailbox | ring.keeps_order | shown |"
        self.refused("S0-1 is shown, but src/actor does not exist")


MAP = {"cases": [{"name": "ring.keeps_order", "program": "tests/unit/test_ring", "seconds": 1, "verdict": "pass"}],
       "files": {"src/base/ring.c": {"push": {"first": 1, "last": 2, "cases": [0]}},
                 "src/base/other.c": {"pop": {"first": 1, "last": 2, "cases": []}}}}


class Covered(unittest.TestCase):
    """With a map of what each test runs."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = Tree(folder.name)
        base = self.tree.root / "src" / "base"
        base.mkdir(parents=True)
        for name in ("ring", "other", "lonely"):
            (base / f"{name}.h").write_text("")
            (base / f"{name}.c").write_text(f'#include "base/{name}.h"\n')
        (base / "user.c").write_text('#include "base/ring.h"\n#include "base/other.h"\n')
        self.map = self.tree.root / "map.json"
        self.map.write_text(json.dumps(MAP))

    def result(self, served):
        self.tree.rows[0] = f"| S0-1 | | asked | {served} | ring.keeps_order | shown |"
        return self.tree.run("--covered", "--map", str(self.map))

    def test_a_test_that_runs_the_file_will_do(self):
        for served in ("base/ring.c: as asked", "base: ring", "base: some ring or other"):
            code, text = self.result(served)
            self.assertEqual(code, 0, text)

    def test_a_test_that_does_not_run_the_file_is_refused(self):
        code, text = self.result("base/other.c: as asked")
        self.assertEqual(code, 1)
        self.assertIn("none of the tests it names runs src/base/other", text)

    def test_a_file_that_nothing_uses_is_refused(self):
        code, text = self.result("base: lonely")
        self.assertEqual(code, 1)
        self.assertIn("names src/base/lonely.h, which no other file of src/ includes", text)

    def test_a_tree_without_the_tables_is_told_apart(self):
        code, text = self.tree.call()
        self.assertEqual(code, 2)
        self.assertIn("is not there", text)


if __name__ == "__main__":
    unittest.main()
