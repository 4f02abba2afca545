"""The rows of a benchmark as a table for a terminal."""

from . import goals
from .spec import OURS
from .stats import AHEAD, BEHIND, LEVEL, UNCLEAR, is_met

SIGN = {AHEAD: "+", LEVEL: "=", BEHIND: "-", UNCLEAR: "?"}


def number(value):
    """Three or four figures that matter."""
    if value >= 1000:
        return f"{value:,.0f}"
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"


def percent(fraction):
    return f"{100 * fraction:.1f}%" if fraction < 0.1 else f"{100 * fraction:.0f}%"


def _peer_cell(line, peer):
    if peer in line["peers"]:
        sign = SIGN[line["verdicts"][peer]]
        short = [g for g in goals.of(line, "times") if g["peer"] == peer and not g["met"]]
        if short and (sign == SIGN[AHEAD] or short[0]["want"] < 1):
            sign = f"<{short[0]['want']:g}"
        return f"{number(line['peers'][peer])}  {line['ratios'][peer]:.2f}x {sign}"
    return "skipped" if peer in line["skipped"] else ""


def _goal_cells(line):
    """Our best round, what it is to be, and ours against ours."""
    best = line.get("best", {}).get(OURS)
    cells = ["" if best is None else number(best), "", ""]
    for at, kind in ((1, "goal"), (2, "speedup")):
        for goal in goals.of(line, kind):
            way = "" if kind == "goal" else f"{goal['has']:.2f}x of "
            unit = "" if kind == "goal" else "x"
            cells[at] = f"{way}{goal['want']:g}{unit} {'met' if goal['met'] else 'MISSED'}"
    return cells


def _columns(rows):
    """Peers in the order in which they first appear."""
    peers = []
    for line in rows:
        for name in list(line["peers"]) + list(line["skipped"]):
            if name not in peers:
                peers.append(name)
    return peers


def _grid(cells):
    """Left-aligned first column, right-aligned others."""
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = []
    for row in cells:
        rest = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append("  ".join([row[0].ljust(widths[0])] + rest).rstrip())
    lines.insert(1, "-" * max(len(line) for line in lines))
    return lines


def _notes(rows):
    notes = []
    for line in rows:
        if line["instructions"]:
            counts = ", ".join(f"{n} {number(c)}" for n, c in line["instructions"].items())
            notes.append(f"{line['case']}: instructions an operation (callgrind): {counts}")
        for name in line["by_instructions"]:
            notes.append(f"{line['case']}: in time behind {name} by less than 10% and more than the "
                         "spread; level by instructions")
    skipped = {name: why for line in rows for name, why in line["skipped"].items()}
    notes += [f"skipped {name}: {why}" for name, why in skipped.items()]
    return notes


def render(title, rows):
    """Lines of text."""
    peers = _columns(rows)
    has_goals = any(line.get("goals") for line in rows)
    extra = ["best", "goal", "to p1"] if has_goals else []
    cells = [["case", "unit", "blitz"] + extra + ["A/A", "spread"] + peers]
    for line in rows:
        arrow = "" if line["better"] == "lower" else " (higher is better)"
        info = "" if line["target"] else " (i)"
        cells.append([line["title"] + info, line["unit"] + arrow, number(line["blitz"])]
                     + (_goal_cells(line) if has_goals else [])
                     + [f"{line['aa']:.2f}x", percent(line["spread"])]
                     + [_peer_cell(line, p) for p in peers])
    lines = [title, ""] + _grid(cells) + [""]
    lines.append("median of %s rounds; Nx: ours is N times better; + ahead, = level within the A/A "
                 "spread, - behind, ? too noisy" % _span(line["runs"] for line in rows))
    if has_goals:
        lines.append("goal: of our best round; to p1: our best against that of the row before it; "
                     "<N: N times was asked for")
    return lines + _notes(rows) + [_summary(rows)]


def _span(numbers):
    numbers = sorted(numbers)
    return str(numbers[0]) if numbers[0] == numbers[-1] else f"{numbers[0]} to {numbers[-1]}"


def _summary(rows):
    targets = [line for line in rows if line["target"]]
    compared = [line for line in targets if line["peers"]]
    text = f"ahead or level in {sum(map(is_met, compared))} of {len(compared)} cases"
    if len(compared) < len(targets):
        text += f"; {len(targets) - len(compared)} without a peer"
    asked = [goal for line in rows for goal in line.get("goals", [])]
    if asked:
        text += f"; {sum(goal['met'] for goal in asked)} of {len(asked)} goals met"
    if len(targets) < len(rows):
        text += f" ({len(rows) - len(targets)} more for information, marked i)"
    return text
