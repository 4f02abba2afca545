"""From samples to a row of build/bench/NAME.json: the figure, the spread, the ratio, the verdict.

The figure is the median of all rounds. Not the minimum: for a queue between threads the best round
is the one where the threads happened not to meet, which is not what we want to know.

The spread is the A/A spread: how far apart the medians of *the same program* come in this very run.
Ours runs as two contenders; we pool the samples of both, deal them into two hands over and over
(every way there is, if there are few), and take the ratio of the two medians that 95% of the deals
stay under, or the ratio the two contenders really had if that is further from 1. A difference
smaller than that is noise, whatever the reason for the noise. More rounds make it smaller. Where it
stays wider than NOISE_MAX, not being behind is no merit: the verdict is "unclear".

A ratio says how many times better ours is (above 1: ahead), whichever way the unit points.
"""

import itertools
import random
from math import comb
from statistics import median

from .spec import AGAIN, OURS

DEALS = 2000
CLOSE = 0.10  # nearer than this, time on a shared machine does not decide: count instructions
INSTRUCTIONS_LEVEL = 1.02  # as many instructions, give or take what start-up leaves in the count

NOISE_MAX = 0.25  # level within a spread wider than this says nothing

AHEAD, LEVEL, BEHIND, UNCLEAR = "ahead", "level", "behind", "unclear"


def ratio(ours, theirs, better):
    """How many times better ours is."""
    if ours <= 0 or theirs <= 0:
        raise ValueError(f"a figure must be above zero: {ours}, {theirs}")
    return theirs / ours if better == "lower" else ours / theirs


def _deals(count, half):
    """Which samples the first hand gets: all ways if few, else random ones, the same each time."""
    if comb(count, half) <= DEALS:
        yield from itertools.combinations(range(count), half)
        return
    rng = random.Random(count)
    for _ in range(DEALS):
        yield rng.sample(range(count), half)


def _apart(a, b):
    """The distance of a ratio from 1, the same both ways round."""
    return max(a, b) / min(a, b) - 1


def aa_spread(first, second):
    """The A/A spread of two sets of samples of the same program, as a fraction."""
    pool = sorted(first) + sorted(second)
    gaps = []
    for hand in _deals(len(pool), len(first)):
        taken = set(hand)
        left = [pool[i] for i in range(len(pool)) if i not in taken]
        gaps.append(_apart(median(pool[i] for i in taken), median(left)))
    gaps.sort()
    dealt = gaps[min(len(gaps) - 1, int(0.95 * len(gaps)))]
    return max(dealt, _apart(median(first), median(second)))


def verdict(how_many_times, spread, instructions=None):
    """ahead, level, behind or unclear. instructions: (ours, theirs), if counted."""
    if how_many_times > 1 + spread:
        return AHEAD
    if how_many_times >= 1 / (1 + spread):
        return LEVEL if spread <= NOISE_MAX else UNCLEAR
    if instructions and how_many_times >= 1 / (1 + CLOSE):
        ours, theirs = instructions
        return LEVEL if ours <= theirs * INSTRUCTIONS_LEVEL else BEHIND
    return BEHIND


def is_close(how_many_times):
    return 1 / (1 + CLOSE) <= how_many_times <= 1 + CLOSE


def best(samples, better):
    return min(samples) if better == "lower" else max(samples)


def row(case, samples, skipped):
    """One row of the JSON file. samples: {contender: [values]}; skipped: {peer: why}."""
    figures = {name: median(values) for name, values in samples.items()}
    ours = figures[OURS]
    peers = {n: f for n, f in figures.items() if n not in (OURS, AGAIN)}
    spread = aa_spread(samples[OURS], samples[AGAIN])
    ratios = {n: ratio(ours, f, case.better) for n, f in peers.items()}
    return {
        "case": case.name,
        "title": case.title,
        "unit": case.unit,
        "better": case.better,
        "target": case.target,
        "blitz": ours,
        "peers": peers,
        "runs": min(len(values) for values in samples.values()),
        "spread": spread,
        "aa": ratio(ours, figures[AGAIN], case.better),
        "again": figures[AGAIN],
        "ratios": ratios,
        "verdicts": {n: verdict(r, spread) for n, r in ratios.items()},
        "best": {n: best(v, case.better) for n, v in samples.items()},
        "skipped": {n: why for n, why in skipped.items() if n in case.peers},
        "instructions": {},
        "samples": samples,
    }


def with_instructions(line, counts):
    """The row with instruction counts {contender: per operation}, its verdicts judged anew."""
    verdicts = {}
    for name, times in line["ratios"].items():
        both = (counts[OURS], counts[name]) if OURS in counts and name in counts else None
        verdicts[name] = verdict(times, line["spread"], both)
    return dict(line, instructions=counts, verdicts=verdicts)


def is_met(line):
    """Ahead of every peer, or level."""
    return all(v in (AHEAD, LEVEL) for v in line["verdicts"].values())


def is_unclear(line):
    return UNCLEAR in line["verdicts"].values()
