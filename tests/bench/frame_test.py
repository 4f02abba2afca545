#!/usr/bin/env python3
"""Tests of the bench frame: does tools/bench tell the truth about programs whose figures we know?

The contenders are small shell scripts that print given figures, in their own tree, so nothing is built and
nothing is timed. The figures are not tested, only how the frame processes them.
"""

import contextlib
import importlib.util
import io
import json
import os
import shutil
import sys
import tempfile
import unittest
from importlib.machinery import SourceFileLoader
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
_loader = SourceFileLoader("bench_tool", str(ROOT / "tools" / "bench"))
_spec = importlib.util.spec_from_loader("bench_tool", _loader)
bench = importlib.util.module_from_spec(_spec)
_loader.exec_module(bench)

from bench_frame import build, goals, measure, plot, report, spec, stats, table  # noqa: E402


class Tree(unittest.TestCase):
    """A tree with a bench/ folder; benchmarks are written into it as the test goes."""

    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="bench-frame-"))
        self.addCleanup(shutil.rmtree, self.root)
        (self.root / "bench").mkdir()

    def program(self, name, body):
        """A shell script; $1 is the case, $2 --seconds=S or --ops=N."""
        path = self.root / name
        path.write_text("#!/bin/sh\n" + body + "\n", encoding="utf-8")
        path.chmod(0o755)

    def prints(self, name, *values):
        """A program that prints the given values, one per run, round and round."""
        log = self.root / f"{name}.runs"
        cases = "\n".join(f"{i}) echo $1 {v} ;;" for i, v in enumerate(values))
        self.program(name, f'n=$(cat "{log}" 2>/dev/null || echo 0)\n'
                           f'echo $((n + 1)) >"{log}"\n'
                           f'echo "{name} $1 $2" >>"{self.root}/order"\n'
                           f"case $((n % {len(values)})) in\n{cases}\nesac")

    def describe(self, text, name="toy"):
        (self.root / "bench" / f"{name}.toml").write_text(text, encoding="utf-8")

    def toy(self, better="lower", extra="", peers='"peer"'):
        self.describe(f"""
title = "Toy"
[contender.blitz]
run = "{{root}}/ours"
[contender.peer]
run = "{{root}}/peer"
{extra}
[[case]]
name = "work"
unit = "ns"
better = "{better}"
peers = [{peers}]
""")

    def bench(self, *args):
        """(exit status, what was printed)"""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                is_told = any(word.startswith("--instructions") for word in args)
                status = bench.main([*args, "--root", str(self.root)]
                                    + ([] if is_told else ["--instructions=none"]))
            except SystemExit as end:
                status = end.code
        return status, out.getvalue() + err.getvalue()

    def rows(self, name="toy"):
        return json.loads((self.root / "build" / "bench" / f"{name}.json").read_text("utf-8"))


class TheJson(Tree):
    def test_has_the_promised_keys_and_types(self):
        self.prints("ours", 10)
        self.prints("peer", 20)
        self.toy()
        status, _ = self.bench("toy", "--quick")
        self.assertEqual(status, 0)
        rows = self.rows()
        self.assertEqual(len(rows), 1)
        row = rows[0]
        self.assertEqual(row["case"], "work")
        self.assertEqual(row["unit"], "ns")
        self.assertEqual(row["better"], "lower")
        self.assertEqual(row["blitz"], 10)
        self.assertEqual(row["peers"], {"peer": 20})
        self.assertEqual(row["runs"], 5)
        self.assertEqual(row["spread"], 0)
        self.assertEqual(row["aa"], 1)
        self.assertIsInstance(row["run"]["machine"]["cpu"], str)

    def test_the_figure_is_the_median_and_the_best_is_kept(self):
        row = stats.row(spec.Case("c", "ns"), {spec.OURS: [9, 1, 5], spec.AGAIN: [5, 5, 5],
                                               "p": [4, 40, 6]}, {})
        self.assertEqual(row["blitz"], 5)
        self.assertEqual(row["peers"], {"p": 6})
        self.assertEqual(row["best"], {spec.OURS: 1, spec.AGAIN: 5, "p": 4})

    def test_the_best_of_a_throughput_is_the_highest(self):
        case = spec.Case("c", "M/s", better="higher")
        row = stats.row(case, {spec.OURS: [9, 1, 5], spec.AGAIN: [5, 5, 5]}, {})
        self.assertEqual(row["best"][spec.OURS], 9)


class Goals(Tree):
    """A figure, a multiple of a peer, a multiple of ours: beyond being ahead."""

    def two_cases(self, first="", second=""):
        self.describe(f"""
title = "Toy"
[contender.blitz]
run = "{{root}}/ours"
[contender.peer]
run = "{{root}}/peer"
[[case]]
name = "one"
unit = "ns"
peers = ["peer"]
{first}
[[case]]
name = "two"
unit = "ns"
peers = ["peer"]
{second}
""")

    def goals(self, at=0):
        return [(g["kind"], g["met"]) for g in self.rows()[at]["goals"]]

    def test_the_best_round_is_held_against_the_goal(self):
        self.prints("ours", 30, 30, 30, 30, 19)
        self.prints("peer", 100)
        for goal, met in ((20, True), (18, False)):
            self.two_cases(f"goal = {goal}")
            _, said = self.bench("toy", "--quick")
            self.assertEqual(self.goals(), [("goal", met)])
            self.assertIn(f"{goal} {'met' if met else 'MISSED'}", said)

    def test_ahead_is_not_enough_where_four_times_were_asked_for(self):
        self.prints("ours", 10)
        self.prints("peer", 30)
        self.two_cases("times = {peer = 4}", "times = {peer = 3}")
        status, said = self.bench("toy", "--quick", "--verdict")
        self.assertEqual((self.goals(0), self.goals(1)), ([("times", False)], [("times", True)]))
        self.assertEqual(status, 1)
        self.assertIn("3.00x <4", said)
        self.assertIn("one: 3.00x of peer instead of 4x", said)

    def test_ours_is_compared_with_ours(self):
        self.program("ours", "case $1 in one) echo one 100 ;; two) echo two 60 ;; esac")
        self.prints("peer", 1000)
        for speedup, met in ((1.6, True), (1.7, False)):
            self.two_cases(second=f'beside = "one"\nspeedup = {speedup}')
            _, said = self.bench("toy", "--quick")
            self.assertEqual(self.goals(1), [("speedup", met)])
            self.assertIn(f"1.67x of {speedup}x", said)

    def test_below_1_it_is_an_allowed_price(self):
        self.prints("ours", 12)
        self.prints("peer", 10)
        for times, status in ((0.8, 0), (0.9, 1)):
            self.two_cases(f"times = {{peer = {times}}}", f"times = {{peer = {times}}}")
            self.assertEqual(self.bench("toy", "--quick", "--verdict")[0], status)

    def test_an_allowed_price_is_kept_by_a_row_that_is_level_by_instructions(self):
        case = spec.Case("c", "ns", peers=["p"], times={"p": 0.99})
        for counts, met in (({spec.OURS: 100, "p": 100}, True), ({spec.OURS: 120, "p": 100}, False)):
            line = stats.row(case, {spec.OURS: [105] * 5, spec.AGAIN: [105] * 5, "p": [100] * 5}, {})
            line = stats.with_instructions(line, counts)
            self.assertEqual([g["met"] for g in goals.with_goals([case], [line])[0]["goals"]], [met])

    def test_all_met_is_a_verdict_of_0(self):
        self.prints("ours", 10)
        self.prints("peer", 50)
        self.two_cases("goal = 10\ntimes = {peer = 5}")
        self.assertEqual(self.bench("toy", "--quick", "--verdict")[0], 0)

    def test_what_cannot_be_meant_is_refused(self):
        for second in ("times = {nobody = 4}", 'beside = "later"\nspeedup = 1', 'beside = "one"',
                       'beside = "two"\nspeedup = 1'):
            self.two_cases(second=second)
            self.assertIn("bench/toy.toml", str(self.refusal()))

    def refusal(self):
        with self.assertRaises(spec.SpecError) as caught:
            spec.load(self.root / "bench", "toy")
        return caught.exception

    def test_a_slow_case_gets_a_third_of_the_rounds_and_no_warm_up(self):
        self.prints("ours", 10)
        self.prints("peer", 50)
        self.two_cases("slow = true")
        self.bench("toy", "--runs=9")
        order = (self.root / "order").read_text(encoding="utf-8").splitlines()
        self.assertEqual(sum(line.startswith("peer one") for line in order), 3)
        self.assertEqual(sum(line.startswith("peer two") for line in order), 10)


class Ratios(Tree):
    def test_are_taken_within_the_round(self):
        ours, peer = [10, 50, 10, 50, 50], [20, 100, 20, 100, 20]
        self.assertEqual(stats.paired(ours, peer, "lower"), 2)
        self.assertEqual(stats.paired(ours, peer, "higher"), 0.5)

    def test_lower_is_better_twice_as_fast_is_two(self):
        self.assertEqual(stats.ratio(10, 20, "lower"), 2)

    def test_higher_is_better_twice_as_much_is_two(self):
        self.assertEqual(stats.ratio(20, 10, "higher"), 2)

    def test_zero_is_refused(self):
        with self.assertRaises(ValueError):
            stats.ratio(0, 10, "lower")

    def test_the_table_shows_both_ways(self):
        for better, ours, peer in (("lower", 10, 25), ("higher", 25, 10)):
            self.prints("ours", ours)
            self.prints("peer", peer)
            self.toy(better)
            _, text = self.bench("toy", "--quick")
            self.assertIn("2.50x +", text)

    def test_behind_both_ways(self):
        for better, ours, peer in (("lower", 20, 10), ("higher", 10, 20)):
            self.prints("ours", ours)
            self.prints("peer", peer)
            self.toy(better)
            _, text = self.bench("toy", "--quick")
            self.assertIn("0.50x -", text)


class TheSpread(unittest.TestCase):
    def test_is_zero_for_equal_samples(self):
        self.assertEqual(stats.aa_spread([7] * 5, [7] * 5), 0)

    def test_is_at_least_what_ours_differed_from_ours(self):
        self.assertAlmostEqual(stats.aa_spread([10] * 5, [13] * 5), 0.3)

    def test_is_the_same_whichever_comes_first(self):
        a, b = [10, 11, 12, 13, 14], [9, 12, 15, 10, 11]
        self.assertAlmostEqual(stats.aa_spread(a, b), stats.aa_spread(b, a))

    def test_one_outlier_does_not_make_it_wide(self):
        steady = [100, 101, 99, 100, 102, 98, 100, 101, 99]
        self.assertLess(stats.aa_spread(steady, steady[:-1] + [900]), 0.05)

    def test_more_rounds_make_it_smaller(self):
        a, b = [80, 120, 90, 110, 100], [110, 100, 80, 120, 90]
        self.assertLess(stats.aa_spread(a * 8, b * 8), stats.aa_spread(a, b))

    def test_good_and_bad_minutes_that_hit_both_alike_do_not_count(self):
        minutes = [10, 50, 10, 50, 51, 11, 50]
        self.assertLess(stats.aa_spread(minutes, [m * 1.01 for m in minutes]), 0.02)

    def test_covers_what_dividing_the_figures_would_say_of_a_close_peer(self):
        ours, close, far = [10, 50, 10, 50, 50], [10, 50, 10, 50, 47], [30, 99, 30, 20, 20]
        case = spec.Case("c", "ns", peers=["close", "far"])
        row = stats.row(case, {spec.OURS: ours, spec.AGAIN: ours, "close": close, "far": far}, {})
        self.assertAlmostEqual(row["spread"], 50 / 47 - 1)
        self.assertEqual(row["verdicts"]["close"], stats.LEVEL)

    def test_is_the_same_every_time(self):
        a, b = [80, 120, 90, 110, 100, 77] * 4, [90, 77, 120, 80, 100, 110] * 4  # 2^24 ways
        self.assertEqual(stats.aa_spread(a, b), stats.aa_spread(a, b))


class Verdicts(unittest.TestCase):
    def test_outside_the_spread(self):
        self.assertEqual(stats.verdict(1.2, 0.1), stats.AHEAD)
        self.assertEqual(stats.verdict(0.8, 0.1), stats.BEHIND)

    def test_within_the_spread_is_level(self):
        for ratio in (1.09, 1.0, 0.92):
            self.assertEqual(stats.verdict(ratio, 0.1), stats.LEVEL)

    def test_a_wide_spread_proves_nothing(self):
        self.assertEqual(stats.verdict(1.0, 0.5), stats.UNCLEAR)
        self.assertEqual(stats.verdict(2.0, 0.5), stats.AHEAD)
        self.assertEqual(stats.verdict(0.5, 0.5), stats.BEHIND)

    def test_below_ten_percent_instructions_decide(self):
        self.assertEqual(stats.verdict(0.95, 0.01), stats.BEHIND)
        self.assertEqual(stats.verdict(0.95, 0.01, (30, 30)), stats.LEVEL)
        self.assertEqual(stats.verdict(0.95, 0.01, (40, 30)), stats.BEHIND)

    def test_above_ten_percent_they_do_not(self):
        self.assertEqual(stats.verdict(0.80, 0.01, (10, 30)), stats.BEHIND)

    def test_counts_of_one_side_alone_decide_nothing(self):
        row = stats.row(spec.Case("c", "ns", peers=["p"]),
                        {spec.OURS: [20] * 5, spec.AGAIN: [20] * 5, "p": [19] * 5}, {})
        self.assertEqual(stats.with_instructions(row, {spec.OURS: 1})["verdicts"]["p"],
                         stats.BEHIND)
        both = stats.with_instructions(row, {spec.OURS: 1, "p": 2})
        self.assertEqual(both["verdicts"]["p"], stats.LEVEL)
        self.assertEqual(both["by_instructions"], ["p"])
        self.assertIn("level by instructions", "\n".join(table.render("t", [both])))


class TheExitStatus(Tree):
    def verdict_of(self, ours, peer, target="true"):
        self.prints("ours", *ours)
        self.prints("peer", *peer)
        self.toy()
        path = self.root / "bench" / "toy.toml"
        path.write_text(path.read_text("utf-8") + f"target = {target}\n", encoding="utf-8")
        return self.bench("toy", "--quick", "--verdict")

    def test_ahead_is_0(self):
        self.assertEqual(self.verdict_of([10], [20])[0], 0)

    def test_level_is_0(self):
        self.assertEqual(self.verdict_of([10], [10])[0], 0)

    def test_behind_is_1_and_names_the_case_and_the_peer(self):
        status, text = self.verdict_of([20], [10])
        self.assertEqual(status, 1)
        self.assertIn("behind: work against peer", text)

    def test_behind_where_nothing_is_promised_is_0(self):
        self.assertEqual(self.verdict_of([20], [10], target="false")[0], 0)

    def test_too_noisy_is_77_after_more_rounds(self):
        status, text = self.verdict_of([10, 30, 90, 20, 60], [30, 20])
        self.assertEqual(status, 77)
        self.assertIn("too noisy", text)
        self.assertEqual(self.rows()[0]["runs"], 5 * spec.Spec.more)

    def test_a_missing_peer_is_77_with_the_reason(self):
        self.prints("ours", 10)
        self.toy(extra='build = ["sh -c false"]')
        status, text = self.bench("toy", "--quick", "--verdict")
        self.assertEqual(status, 77)
        self.assertIn("peer is missing: does not build", text)

    def test_last_judges_without_running(self):
        self.verdict_of([20], [10])
        os.remove(self.root / "ours")
        status, _ = self.bench("toy", "--last", "--verdict")
        self.assertEqual(status, 1)


class SkippedPeers(Tree):
    def test_one_that_does_not_build_is_named_with_its_first_error(self):
        self.prints("ours", 10)
        self.toy(extra="build = [['sh', '-c', 'echo warming up; echo x.c:1: error: no ring.h; "
                       "echo collect2: error: bye; exit 1']]")
        status, text = self.bench("toy", "--quick")
        self.assertEqual(status, 0)
        self.assertIn("skipped peer: does not build: x.c:1: error: no ring.h", text)
        self.assertIn("no ring.h", self.rows()[0]["skipped"]["peer"])
        self.assertEqual(self.rows()[0]["peers"], {})

    def test_one_whose_compiler_is_not_there(self):
        self.prints("ours", 10)
        self.toy(extra='build = ["no-such-compiler x"]')
        _, text = self.bench("toy", "--quick")
        self.assertIn("no-such-compiler: No such file", text)

    def test_what_setup_says_is_added_to_the_reason(self):
        self.prints("ours", 10)
        (self.root / "tools").mkdir()
        self.program("tools/setup", 'echo "setup: not root, please install $1"; exit 1')
        self.toy(extra='setup = ["bench-toy"]\nbuild = ["sh -c false"]')
        _, text = self.bench("toy", "--quick")
        self.assertIn("please install bench-toy", text)

    def test_one_that_crashes_halfway_is_out_of_the_case(self):
        self.prints("ours", 10)
        self.program("peer", "echo 'queue lost a message' >&2; exit 3")
        self.toy()
        status, text = self.bench("toy", "--quick")
        self.assertEqual(status, 0)
        self.assertIn("skipped peer: fails: ended with 3: queue lost a message", text)

    def test_without_any_peer_nothing_counts_as_won(self):
        self.prints("ours", 10)
        self.toy(extra='build = ["sh -c false"]')
        _, text = self.bench("toy", "--quick")
        self.assertIn("ahead or level in 0 of 0 cases; 1 without a peer", text)


class OursFailing(Tree):
    def test_is_the_end(self):
        self.program("ours", "exit 9")
        self.prints("peer", 1)
        self.toy()
        with self.assertRaisesRegex(measure.RunError, "blitz, case work: ended with 9"):
            self.bench("toy", "--quick")

    def test_not_building_is_the_end(self):
        self.describe("[contender.blitz]\nbuild = ['sh -c false']\nrun = 'x'\n"
                      "[[case]]\nname = 'c'\nunit = 'ns'\n")
        with self.assertRaises(build.BuildError):
            self.bench("toy", "--quick")


class TheProtocol(unittest.TestCase):
    def test_reads_the_line_of_the_case_among_remarks(self):
        self.assertEqual(measure.value_of("# warm\nwork 12.5\nother 3\n", "work"), 12.5)

    def test_refuses_everything_else(self):
        for text in ("", "work\n", "work 1 2\n", "work 1\nwork 2\n", "work fast\n", "work 0\n",
                     "work -1\n", "work nan\n", "work inf\n"):
            with self.assertRaises(measure.RunError, msg=repr(text)):
                measure.value_of(text, "work")


class Rounds(Tree):
    def order(self):
        return (self.root / "order").read_text("utf-8").splitlines()

    def test_everyone_runs_once_a_round_and_nobody_is_always_first(self):
        self.prints("ours", 10)
        self.prints("peer", 20)
        self.toy()
        self.bench("toy", "--quick")
        order = [line.split()[0] for line in self.order()]
        turns = [order[i:i + 3] for i in range(0, len(order), 3)]
        self.assertEqual(len(turns), 1 + 5)  # one to warm up
        for turn in turns:
            self.assertEqual(sorted(turn), ["ours", "ours", "peer"])
        self.assertGreater(len({tuple(turn) for turn in turns}), 1)

    def test_the_warm_up_is_not_counted(self):
        self.prints("ours", 999, 999, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10)
        self.prints("peer", 20)
        self.toy()
        self.bench("toy", "--quick")
        self.assertEqual(self.rows()[0]["blitz"], 10)
        self.assertEqual(self.rows()[0]["spread"], 0)

    def test_runs_and_seconds_are_passed_on(self):
        self.prints("ours", 10)
        self.prints("peer", 20)
        self.toy()
        self.bench("toy", "--runs=6", "--seconds=0.5")
        self.assertEqual(self.rows()[0]["runs"], 6)
        self.assertTrue(all(line.endswith("work --seconds=0.5") for line in self.order()))

    def test_priority_is_the_programs_and_not_ours(self):
        before = os.nice(0)
        self.program("ours", f'nice >>"{self.root}/nice"; echo $1 10')
        self.toy(peers="")
        self.bench("toy", "--quick")
        self.assertEqual(os.nice(0), before)
        for level in (self.root / "nice").read_text("utf-8").split():
            self.assertLessEqual(int(level), before)

    def test_a_peer_takes_part_only_where_the_case_names_it(self):
        self.prints("ours", 10)
        self.prints("peer", 20)
        self.toy(peers="")
        self.bench("toy", "--quick")
        self.assertNotIn("peer", {line.split()[0] for line in self.order()})

    def counts_of(self, keys):
        """What is counted of a case with these keys whose figures are ten times apart."""
        self.prints("ours", 10)
        self.prints("peer", 100)
        self.toy()
        path = self.root / "bench" / "toy.toml"
        path.write_text(path.read_text("utf-8") + keys, encoding="utf-8")
        with mock.patch.object(measure, "can_count", return_value=True), \
                mock.patch.object(measure, "instructions_per_op", return_value=7.0):
            self.bench("toy", "--quick", "--instructions=close")
        return self.rows()[0]["instructions"]

    def test_what_is_to_be_counted_is_counted_however_far_apart(self):
        self.assertEqual(self.counts_of("counted = true\n"), {"blitz": 7.0, "peer": 7.0})

    def test_far_apart_nothing_is_counted_unless_it_is_asked_for(self):
        self.assertEqual(self.counts_of("\n"), {})

    def test_with_no_operations_to_count_nothing_is_counted(self):
        self.prints("ours", 10)
        self.prints("peer", 10)
        self.toy()
        path = self.root / "bench" / "toy.toml"
        path.write_text(path.read_text("utf-8") + "count_ops = 0\n", encoding="utf-8")
        with mock.patch.object(measure, "instructions_per_op", side_effect=AssertionError):
            self.bench("toy", "--quick", "--instructions=all")
        self.assertEqual(self.rows()[0]["instructions"], {})

    @unittest.skipUnless(shutil.which("valgrind"), "no valgrind here")
    def test_instructions_are_the_difference_of_two_counts(self):
        self.program("ours", 'case $2 in --ops=*) i=${2#--ops=}; while [ $i -gt 0 ]; do '
                             "i=$((i - 1)); done;; esac; echo $1 10")
        self.program("peer", 'case $2 in --ops=*) i=${2#--ops=}; while [ $i -gt 0 ]; do '
                             "i=$((i - 1)); i=$((i + 0)); done;; esac; echo $1 10")
        self.toy()
        path = self.root / "bench" / "toy.toml"
        path.write_text(path.read_text("utf-8") + "count_ops = 100\n", encoding="utf-8")
        self.bench("toy", "--quick", "--instructions=all")
        counts = self.rows()[0]["instructions"]
        self.assertGreater(counts["blitz"], 10)
        self.assertGreater(counts["peer"], counts["blitz"])


class WithinARun(Tree):
    """One run, several figures: a load has a rate and latencies."""

    def describe_two(self, extra=""):
        self.toy(extra=extra)
        path = self.root / "bench" / "toy.toml"
        path.write_text(path.read_text("utf-8") + "[[case]]\nname = 'work.rate'\nunit = '/s'\n"
                        "better = 'higher'\nwithin = 'work'\npeers = ['peer']\n", encoding="utf-8")

    def says_both(self, name, cost, rate):
        self.program(name, f'echo "{name} $1" >>"{self.root}/order"; echo work {cost}; echo work.rate {rate}')

    def test_each_figure_has_its_row_and_the_program_runs_once(self):
        self.says_both("ours", 10, 300)
        self.says_both("peer", 20, 100)
        self.describe_two()
        self.assertEqual(self.bench("toy", "--quick")[0], 0)
        cost, rate = self.rows()
        self.assertEqual((cost["blitz"], rate["blitz"], rate["ratios"]["peer"]), (10, 300, 3))
        order = (self.root / "order").read_text("utf-8").splitlines()
        self.assertEqual(len(order), 3 * (1 + 5))
        self.assertEqual(set(order), {"ours work", "peer work"})

    def test_asked_for_alone_it_is_the_same_run(self):
        self.says_both("ours", 10, 300)
        self.says_both("peer", 20, 100)
        self.describe_two()
        self.bench("toy", "--quick", "--only=rate")
        self.assertEqual([line["case"] for line in self.rows()], ["work.rate"])

    def test_a_peer_without_that_figure_is_out_of_that_case_alone(self):
        self.says_both("ours", 10, 300)
        self.program("peer", "echo work 20")
        self.describe_two()
        self.bench("toy", "--quick")
        cost, rate = self.rows()
        self.assertIn("peer", cost["peers"])
        self.assertIn("printed 0 lines", rate["skipped"]["peer"])

    def test_what_ours_cannot_tell_is_left_out_with_the_reason(self):
        self.program("ours", "echo work 10")
        self.says_both("peer", 20, 100)
        self.describe_two()
        status, said = self.bench("toy", "--quick")
        self.assertEqual(status, 0)
        self.assertEqual([line["case"] for line in self.rows()], ["work"])
        self.assertIn("work.rate is left out", said)

    def test_a_run_that_fails_fails_all_of_it(self):
        self.says_both("ours", 10, 300)
        self.program("peer", "echo broken >&2; exit 1")
        self.describe_two()
        self.bench("toy", "--quick")
        for line in self.rows():
            self.assertIn("broken", line["skipped"]["peer"])

    def test_the_description_says_how_many_rounds(self):
        self.says_both("ours", 10, 300)
        self.says_both("peer", 20, 100)
        self.describe_two()
        path = self.root / "bench" / "toy.toml"
        path.write_text("runs = 7\nseconds = 0.25\nmore = 1\n" + path.read_text("utf-8"), encoding="utf-8")
        self.bench("toy")
        self.assertEqual(self.rows()[0]["runs"], 7)
        self.assertEqual(self.rows()[0]["run"]["seconds"], 0.25)


class Descriptions(unittest.TestCase):
    good = ("[contender.blitz]\nrun = 'a b'\n[contender.p]\nrun = ['c d', 'e']\n"
            "[[case]]\nname = 'x'\nunit = 'ns'\npeers = ['p']\n")

    def refused(self, text, why):
        with self.assertRaisesRegex(spec.SpecError, why):
            spec.parse(text, "toy", "bench/toy.toml")

    def test_commands_are_strings_or_lists(self):
        s = spec.parse(self.good, "toy", "bench/toy.toml")
        self.assertEqual(s.contenders["blitz"].run, ["a", "b"])
        self.assertEqual(s.contenders["p"].run, ["c d", "e"])

    def test_mistakes_are_told_with_their_place(self):
        self.refused("title = ", "bench/toy.toml")
        self.refused(self.good.replace("blitz", "blits"), r"no \[contender.blitz\]")
        self.refused(self.good.replace("unit", "units"), "unknown key 'units'")
        self.refused(self.good.replace("unit = 'ns'\n", ""), "unit")
        self.refused(self.good.replace("['p']", "['q']"), "no peer 'q'")
        self.refused(self.good.replace("['p']", "['blitz']"), "no peer 'blitz'")
        self.refused(self.good + "better = 'smaller'\n", "better is")
        self.refused(self.good + "count = 'y'\n", "count names no case")
        self.refused(self.good.replace("'x'", "'x y'"), "no spaces")
        self.refused(self.good + "[[case]]\nname = 'x'\nunit = 'ns'\n", "two cases")
        self.refused("[contender.blitz]\nrun = 'a'\n", r"no \[\[case\]\]")
        self.refused("titel = 'x'\n" + self.good, "unknown key 'titel'")
        self.refused(self.good.replace("'a b'", "''"), "not empty")
        self.refused(self.good + "within = 'y'\n", "within names no case before it")
        self.refused("runs = 3\n" + self.good, "runs is a number, at least 5")
        self.refused("seconds = 'long'\n" + self.good, "seconds is a number")
        second = "[[case]]\nname = 'x.rate'\nunit = 'ns'\nwithin = 'x'\n"
        third = second.replace("x.rate", "x.p99").replace("within = 'x'", "within = 'x.rate'")
        self.refused(self.good + second + third, "has no run of its own")
        self.refused(self.good.replace("peers = ['p']", "") + second + "peers = ['p']\n",
                     "'p' does not run in 'x'")

    def test_every_benchmark_of_the_tree_can_be_read(self):
        names = spec.names(ROOT / "bench")
        self.assertIn("base", names)
        for name in names:
            spec.load(ROOT / "bench", name)


class TheCommandLine(Tree):
    def test_list(self):
        self.toy()
        self.assertIn("toy          Toy", self.bench("--list")[1])
        self.assertIn("against peer", self.bench("toy", "--list")[1])

    def test_only_and_peer_choose(self):
        self.prints("ours", 10)
        self.prints("peer", 20)
        self.toy()
        with self.assertRaisesRegex(spec.SpecError, "no case"):
            self.bench("toy", "--only=nothing")
        with self.assertRaisesRegex(spec.SpecError, "no such peer"):
            self.bench("toy", "--peer=nobody")
        self.assertEqual(self.bench("toy", "--quick", "--only=wor", "--peer=peer")[0], 0)

    def test_wrong_usage_is_2(self):
        self.assertEqual(self.bench()[0], 2)
        self.assertEqual(self.bench("toy", "--runs=4")[0], 2)
        self.assertEqual(self.bench("toy", "--seconds=0")[0], 2)
        self.assertEqual(self.bench("toy", "--seconds=soon")[0], 2)

    def test_an_unknown_benchmark_names_the_known_ones(self):
        self.toy()
        with self.assertRaisesRegex(spec.SpecError, "there are: toy"):
            self.bench("toi", "--quick")


class AnEarlierTree(Tree):
    """--before: ours against blitz of another tree."""

    def setUp(self):
        super().setUp()
        self.toy()
        self.then = self.root / "then"
        (self.then / "bench").mkdir(parents=True)
        shutil.copy(self.root / "bench" / "toy.toml", self.then / "bench")
        self.prints("peer", 1)

    def runs_then(self, *values):
        self.prints("ours then", *values)
        (self.root / "ours then").rename(self.then / "ours")

    def test_a_slower_case_is_behind(self):
        self.prints("ours", 12)
        self.runs_then(10)
        status, said = self.bench("toy", "--quick", "--verdict", "--before", str(self.then))
        self.assertEqual(status, 1)
        self.assertIn("behind: work against before", said)

    def test_an_equal_case_is_level_and_no_peer_runs(self):
        self.prints("ours", 10)
        self.runs_then(10)
        status, _ = self.bench("toy", "--quick", "--verdict", "--before", str(self.then))
        self.assertEqual(status, 0)
        self.assertFalse((self.root / "peer.runs").exists())
        rows = json.loads((self.root / "build/bench/before/toy.json").read_text("utf-8"))
        self.assertEqual(rows[0]["peers"], {"before": 10})
        self.assertFalse((self.root / "build/bench/toy.json").exists())

    def test_a_new_case_is_left_out(self):
        self.prints("ours", 10)
        self.runs_then(10)
        with (self.root / "bench/toy.toml").open("a", encoding="utf-8") as text:
            text.write('[[case]]\nname = "new"\nunit = "ns"\n')
        status, said = self.bench("toy", "--quick", "--before", str(self.then))
        self.assertEqual(status, 0)
        self.assertIn("new is left out", said)

    def test_what_is_no_tree_is_refused(self):
        self.assertEqual(self.bench("toy", "--before", str(self.root / "nowhere"))[0], 2)
        self.assertEqual(self.bench("toy", "--peer=peer", "--before", str(self.then))[0], 2)


class ThePage(Tree):
    def rows_of(self, **more):
        row = {"case": "c", "unit": "ns", "better": "lower", "blitz": 10, "peers": {"p": 20},
               "runs": 5, "spread": 0.05}
        return [dict(row, **more)]

    def write(self, name, rows):
        folder = self.root / "build" / "bench"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.json").write_text(json.dumps(rows), encoding="utf-8")
        return folder

    def page(self, **more):
        return report.page({"toy": self.rows_of(**more)})

    def test_is_written_from_all_files_of_a_real_run(self):
        self.prints("ours", 10)
        self.prints("peer", 20)
        self.toy()
        self.bench("toy", "--quick")
        self.write("other", self.rows_of())
        self.write("compile_commands", {"not": "ours"})
        status, text = self.bench("--report")
        self.assertEqual(status, 0)
        html = Path(text.strip()).read_text("utf-8")
        self.assertIn('<section id="toy">', html)
        self.assertIn('<section id="other">', html)

    def test_needs_no_network_and_no_script(self):
        html = self.page()
        for word in ("http:", "https:", "<script", "@import", "url("):
            self.assertNotIn(word, html)

    def test_the_promised_keys_are_enough(self):
        self.assertIn("2.00&#215; ahead", self.page())

    def test_a_ratio_that_is_given_is_not_worked_out_anew(self):
        self.assertIn("2.34&#215; ahead", self.page(ratios={"p": 2.34}))

    def test_higher_is_better_turns_the_ratio_round(self):
        self.assertIn("0.50&#215; behind", self.page(better="higher"))

    def test_the_band_is_the_spread_around_ours(self):
        html = self.page(blitz=10, peers={"p": 12}, spread=0.25)  # the scale ends at 12.75
        self.assertIn("left:62.75%;width:35.29%", html)

    def test_a_bar_far_beyond_ours_is_cut_and_says_its_figure(self):
        html = self.page(peers={"p": 12345})
        self.assertIn('class="bar peer cut" style="width:100.00%"', html)
        self.assertIn("12,345", html)

    def test_a_skipped_peer_is_there_with_its_reason(self):
        self.assertIn("skipped: no &lt;ring&gt;", self.page(skipped={"q": "no <ring>"}))

    def test_only_targets_are_tallied(self):
        self.assertIn("<b>1</b> ahead", self.page())
        self.assertIn("<b>0</b> ahead", self.page(target=False))

    def test_names_cannot_break_the_page(self):
        self.assertNotIn("<b>evil", self.page(case="<b>evil", peers={"<b>evil": 3}))

    def test_a_file_that_is_no_figures_is_named(self):
        for rows in ([], {}, [{}], self.rows_of(blitz="fast"), self.rows_of(better="smaller")):
            folder = self.write("bad", rows)
            with self.assertRaisesRegex(report.ReportError, "bad.json"):
                report.load(folder)
        (folder / "bad.json").write_text("{", encoding="utf-8")
        with self.assertRaisesRegex(report.ReportError, "bad.json"):
            report.load(folder)

    def test_no_figures_at_all_says_what_to_do(self):
        with self.assertRaisesRegex(report.ReportError, "make bench-base"):
            report.load(self.root)


class Plots(Tree):
    """Two cases, 0 and 9 of something, where the peer goes through the roof."""

    def described(self, cases='"a", "b"', at="0, 9"):
        self.describe(f"""
[contender.blitz]
run = "{{root}}/ours"
[contender.peer]
run = "{{root}}/peer"
[[case]]
name = "a"
unit = "ms"
peers = ["peer"]
[[case]]
name = "b"
unit = "ms"
peers = []
[[plot]]
name = "p"
title = "t <1>"
x = "things"
y = "ms"
cases = [{cases}]
at = [{at}]
""")

    def rows(self, *cases):
        return [{"case": c, "blitz": 1.0, "peers": {"peer": 100.0} if c == "a" else {}} for c in cases]

    def plotted(self, *cases):
        self.described()
        return plot.svg(spec.load(self.root / "bench", "toy").plots[0], self.rows(*cases))

    def test_each_contender_has_a_line_through_its_points(self):
        drawn = self.plotted("a", "b")
        self.assertIn('points="70.0,350.0 490.0,350.0"', drawn)  # ours: from 0 to 9 at 1 ms
        self.assertIn('points="70.0,40.0"', drawn)  # the peer: 100 ms, and no second case
        self.assertIn("t &lt;1&gt;", drawn)

    def test_what_was_not_measured_is_left_out(self):
        self.assertEqual(self.plotted().count("<circle"), 0)
        self.assertEqual(self.plotted("b").count("<circle"), 1)

    def test_a_run_writes_them_and_the_page_shows_them(self):
        self.prints("ours", 1)
        self.prints("peer", 100)
        self.described()
        self.bench("toy", "--quick")
        self.assertTrue((self.root / "build" / "bench" / "toy-p.svg").is_file())
        _, text = self.bench("--report")
        self.assertIn("<figure><svg", Path(text.strip()).read_text("utf-8"))

    def test_places_and_cases_that_do_not_fit_are_refused(self):
        for wrong, why in (({"at": "0"}, "2 cases at 1 places"), ({"at": "0, -1"}, "0 or more"),
                           ({"cases": '"a", "c"'}, "no case 'c'")):
            self.described(**wrong)
            with self.assertRaisesRegex(spec.SpecError, why):
                spec.load(self.root / "bench", "toy")


class Numbers(unittest.TestCase):
    def test_have_as_many_figures_as_matter(self):
        shown = [table.number(x) for x in (0.5, 9.876, 12.34, 123.4, 1234.5)]
        self.assertEqual(shown, ["0.50", "9.88", "12.3", "123", "1,234"])


if __name__ == "__main__":
    unittest.main()
