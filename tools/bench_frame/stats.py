"""From samples to a row of build/bench/NAME.json: the figure, the spread, the ratio, the verdict.

The figure is the median of all rounds. Not the minimum: for a queue between threads the best round
is the one where the threads happened not to meet, which is not what we want to know.

The ratio says how many times better ours is (above 1: ahead), whichever way the unit points. It is
the median, over the rounds, of the ratio within the round: a machine has good and bad minutes, and
those of one round are the same for all. (Dividing the medians compares one's good minutes with
another's bad ones; where figures fall into two heaps that alone is a factor of two.)

The spread is the A/A spread: how far from 1 such a ratio comes when it compares *the same program* in this
very run. Ours runs as two contenders. The two are interchangeable, so we swap them in a random half of the
rounds, many times (in every way, if there are few), and take the ratio that 95% of those stay under. If the
measured A/A ratio is further from 1, we take that. The spread also covers, for a close peer, the difference
between the ratio and the quotient of the figures, so that a reader who divides the figures reaches the same
verdict. A difference smaller than that is noise, whatever the reason. More rounds make it smaller. Where it
stays wider than NOISE_MAX, not being behind is no merit: the verdict is "unclear".
"""

import itertools
import random
from math import exp, log
from statistics import median

from .spec import AGAIN, OURS

SWAPS = 2000
CLOSE = 0.10  # nearer than this, time on a shared machine does not decide: count instructions
INSTRUCTIONS_LEVEL = 1.02  # as many instructions, give or take what start-up leaves in the count

NOISE_MAX = 0.25  # level within a spread wider than this says nothing

AHEAD, LEVEL, BEHIND, UNCLEAR = "ahead", "level", "behind", "unclear"


def ratio(ours, theirs, better):
    """How many times better ours is."""
    if ours <= 0 or theirs <= 0:
        raise ValueError(f"a figure must be above zero: {ours}, {theirs}")
    return theirs / ours if better == "lower" else ours / theirs


def paired(ours, theirs, better):
    """The median of the ratios within the rounds."""
    return median(ratio(a, b, better) for a, b in zip(ours, theirs, strict=True))


def _swaps(rounds):
    """In which rounds to swap: all ways if few, else random ones, the same each time."""
    if 2**rounds <= SWAPS:
        yield from itertools.product((1, -1), repeat=rounds)
        return
    rng = random.Random(rounds)
    for _ in range(SWAPS):
        yield rng.choices((1, -1), k=rounds)


def aa_spread(first, second):
    """The A/A spread of two sets of samples of the same program, as a fraction."""
    logs = [log(a / b) for a, b in zip(first, second, strict=True)]
    gaps = sorted(abs(median(sign * gap for sign, gap in zip(signs, logs)))
                  for signs in _swaps(len(logs)))
    swapped = gaps[min(len(gaps) - 1, int(0.95 * len(gaps)))]
    real = abs(median(logs)), abs(log(median(first) / median(second)))
    return exp(max(swapped, *real)) - 1


def _quotient_gap(ours, theirs, times, better):
    """How far the quotient of the figures is from the ratio, if that is near 1; else 0."""
    return _apart(ratio(ours, theirs, better), times) if is_close(times) else 0.0


def _apart(a, b):
    return max(a, b) / min(a, b) - 1


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
    ratios = {n: paired(samples[OURS], samples[n], case.better) for n in peers}
    spread = max([aa_spread(samples[OURS], samples[AGAIN])]
                 + [_quotient_gap(ours, peers[n], ratios[n], case.better) for n in peers])
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
        "aa": paired(samples[OURS], samples[AGAIN], case.better),
        "again": figures[AGAIN],
        "ratios": ratios,
        "verdicts": {n: verdict(r, spread) for n, r in ratios.items()},
        "best": {n: best(v, case.better) for n, v in samples.items()},
        "skipped": {n: why for n, why in skipped.items() if n in case.peers},
        "instructions": {},
        "by_instructions": [],
        "samples": samples,
    }


def with_instructions(line, counts):
    """The row with instruction counts {contender: per operation}, its verdicts judged anew.

    by_instructions names the peers that time alone would have put ahead of ours.
    """
    verdicts = {}
    for name, times in line["ratios"].items():
        both = (counts[OURS], counts[name]) if OURS in counts and name in counts else None
        verdicts[name] = verdict(times, line["spread"], both)
    turned = [n for n, v in verdicts.items() if v != line["verdicts"][n]]
    return dict(line, instructions=counts, verdicts=verdicts, by_instructions=turned)


def is_met(line):
    """Ahead of every peer, or level."""
    return all(v in (AHEAD, LEVEL) for v in line["verdicts"].values())


def is_unclear(line):
    return UNCLEAR in line["verdicts"].values()
