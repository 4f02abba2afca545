"""Draws figures that belong on one line: how a figure changes from case to case, ours and the peers'.

A benchmark asks for it in its description:

    [[plot]]
    name = "loops"                    # written to build/bench/NAME-loops.svg
    title = "..."                     # and both axes: x = "...", y = "..."
    cases = ["loops-0", "loops-8"]    # in the order of the points
    at = [0, 8]                       # where each of them stands on the x axis

The picture is written by hand, as text: a plotting package would be the largest thing we depend on, for
a handful of polylines. Both axes are logarithmic (x as log(x + 1), since 0 is a place, too), because a
figure that gets out of hand does so by orders of magnitude. A contender that misses some of the cases
has a line through those it has. No script and no network, and it can be read on white and on black.
"""

from html import escape
from math import ceil, floor, log10

from .spec import OURS
from .table import number

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 40, 50
NAMESPACE = "http://www.w3.org/2000/svg"  # lint: allow place: the name of the format, not an address
COLOURS = ["#d9480f", "#f59f00", "#1c7ed6", "#2f9e44", "#7048e8", "#868e96"]


class _Axes:
    """From figures to places in the picture."""

    def __init__(self, at, figures):
        self.x_end = log10(max(at) + 1) or 1
        self.y_low = floor(log10(min(figures)))
        self.y_high = max(ceil(log10(max(figures))), self.y_low + 1)

    def x(self, value):
        return LEFT + (WIDTH - LEFT - RIGHT) * log10(value + 1) / self.x_end

    def y(self, value):
        part = (log10(value) - self.y_low) / (self.y_high - self.y_low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * part


def lines_of(plot, rows):
    """{contender: [(x, figure)]}, ours first, of the rows that were measured."""
    by_case = {row["case"]: row for row in rows}
    lines = {OURS: []}
    for case, at in zip(plot.cases, plot.at, strict=True):
        row = by_case.get(case)
        if row is None:
            continue
        lines[OURS].append((at, row["blitz"]))
        for peer, figure in row["peers"].items():
            lines.setdefault(peer, []).append((at, figure))
    return lines if lines[OURS] else {}


def _text(x, y, words, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(words)}</text>'


def _grid(axes, plot):
    parts = []
    for power in range(axes.y_low, axes.y_high + 1):
        y = axes.y(10.0**power)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" class="grid"/>')
        parts.append(_text(LEFT - 8, y + 4, f"{10.0 ** power:g}", 'text-anchor="end"'))
    for at in plot.at:
        parts.append(_text(axes.x(at), HEIGHT - BOTTOM + 18, f"{at:g}", 'text-anchor="middle"'))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, plot.x, 'text-anchor="middle"'))
    parts.append(_text(0, 0, plot.y, f'text-anchor="middle" transform="translate(16,{HEIGHT / 2}) rotate(-90)"'))
    parts.append(_text(LEFT, 22, plot.title, 'class="title"'))
    return parts


def _label_places(axes, lines):
    """Where the name at the end of each line goes: beside its last point, but not over another."""
    places, last = {}, -99.0
    for name in sorted(lines, key=lambda n: axes.y(lines[n][-1][1])):
        last = max(axes.y(lines[name][-1][1]) + 4, last + 14)
        places[name] = last
    return places


def _line(axes, name, points, colour, label_y):
    places = [(axes.x(x), axes.y(y)) for x, y in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    width = 3 if name == OURS else 1.5
    parts = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>']
    for (x, y), (at, figure) in zip(places, points, strict=True):
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}">'
                     f"<title>{escape(name)}, {at:g}: {number(figure)}</title></circle>")
    parts.append(_text(places[-1][0] + 8, label_y, f"{name} {number(points[-1][1])}", f'style="fill:{colour}"'))
    return parts


def svg(plot, rows):
    """The picture as text; "" if nothing of it was measured."""
    lines = lines_of(plot, rows)
    if not lines:
        return ""
    axes = _Axes(plot.at, [figure for points in lines.values() for _, figure in points])
    labels = _label_places(axes, lines)
    parts = _grid(axes, plot)
    for i, (name, points) in enumerate(lines.items()):
        parts += _line(axes, name, points, COLOURS[i % len(COLOURS)], labels[name])
    style = ("text{font:12px sans-serif;fill:#808080} .title{font-size:14px;font-weight:bold} "
             ".grid{stroke:#808080;stroke-opacity:.3}")
    return (f'<svg xmlns="{NAMESPACE}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
            f'<style>{style}</style>{"".join(parts)}</svg>\n')


def write(folder, spec, rows):
    """Write the plots of a benchmark beside its figures; returns the paths."""
    paths = []
    for plot in spec.plots:
        text = svg(plot, rows)
        if text:
            path = folder / f"{spec.name}-{plot.name}.svg"
            path.write_text(text, encoding="utf-8")
            paths.append(path)
    return paths
