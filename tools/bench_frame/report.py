"""All of build/bench/*.json as one static page: no script, no network, light and dark.

Every case is a small chart: a bar for ours, one for each peer, and across all of them the band of
the A/A spread around our figure. A bar that ends inside the band is level with ours; the eye sees
noise where there is noise. Bars much longer than ours are cut off, visibly, or ours could not be
seen; the figure beside them is always the true one.

Rows are read as any producer may write them: only the keys promised in bench/README.md are needed,
what is missing beyond them is left out of the page.
"""

import json
import re
from html import escape
from pathlib import Path

from . import stats
from .spec import AGAIN, OURS
from .table import number, percent

CUT = 5.0  # bars end at this many times ours
CSS = Path(__file__).with_name("report.css")
NEEDED = {"case": str, "unit": str, "better": str, "blitz": (int, float), "peers": dict,
          "runs": int, "spread": (int, float)}
WORDS = {stats.AHEAD: "ahead", stats.LEVEL: "level", stats.BEHIND: "behind",
         stats.UNCLEAR: "too noisy"}


class ReportError(Exception):
    """There is nothing to report, or a file that cannot be."""


def _check(path, rows):
    if not isinstance(rows, list) or not rows:
        raise ReportError(f"{path.name}: not a list of rows")
    for i, row in enumerate(rows):
        for key, kind in NEEDED.items():
            if not isinstance(row, dict) or not isinstance(row.get(key), kind):
                raise ReportError(f"{path.name}: row {i + 1} has no proper '{key}'")
        if row["better"] not in ("lower", "higher"):
            raise ReportError(f"{path.name}: row {i + 1}: better is '{row['better']}'")
    return rows


def load(folder):
    """{name: rows}"""
    found = {}
    for path in sorted(folder.glob("*.json")):
        if path.name == "compile_commands.json":
            continue
        try:
            found[path.stem] = _check(path, json.loads(path.read_text(encoding="utf-8")))
        except ValueError as error:
            raise ReportError(f"{path.name}: {error}") from None
    if not found:
        raise ReportError("no figures yet: make bench-base")
    return found


def _ratio(row, peer):
    """How many times better ours is; computed here if the row does not have it."""
    given = row.get("ratios", {}).get(peer)
    return given or stats.ratio(row["blitz"], row["peers"][peer], row["better"])


def _verdicts(row):
    """{peer: verdict}; the same."""
    given = row.get("verdicts", {})
    return {peer: given.get(peer) or stats.verdict(_ratio(row, peer), row["spread"])
            for peer in row["peers"]}


class Scale:
    """From figures to percent of the width of a chart."""

    def __init__(self, row):
        longest = max([row["blitz"] * (1 + row["spread"])] + list(row["peers"].values()))
        self.end = min(longest * 1.02, row["blitz"] * CUT)

    def at(self, figure):
        return min(100.0, 100 * figure / self.end)

    def is_cut(self, figure):
        return figure > self.end


def _bar(scale, name, label, figure, note):
    kind = "ours" if name == OURS else "peer"
    cut = " cut" if scale.is_cut(figure) else ""
    return (f'<div class="name {kind}" title="{escape(label)}">{escape(name)}</div>'
            f'<div class="track"><div class="bar {kind}{cut}" '
            f'style="width:{scale.at(figure):.2f}%"></div></div>'
            f'<div class="figure">{number(figure)}</div><div class="note">{note}</div>')


def _band(row, scale):
    """The A/A spread around ours, drawn over all bars of the chart."""
    low = scale.at(row["blitz"] / (1 + row["spread"]))
    high = scale.at(row["blitz"] * (1 + row["spread"]))
    return (f'<div class="over"><div class="band" style="left:{low:.2f}%;'
            f'width:{max(high - low, 0.3):.2f}%"></div></div>')


def _chart(row, labels):
    scale = Scale(row)
    verdicts = _verdicts(row)
    parts = [_bar(scale, OURS, "ours", row["blitz"], f"&#177;{percent(row['spread'])}")]
    for peer, figure in sorted(row["peers"].items(), key=lambda p: p[1],
                               reverse=row["better"] == "higher"):
        word = verdicts[peer]
        note = f'<span class="v {word}">{_ratio(row, peer):.2f}&#215; {WORDS[word]}</span>'
        parts.append(_bar(scale, peer, labels.get(peer, peer), figure, note))
    for peer, why in row.get("skipped", {}).items():
        parts.append(f'<div class="name">{escape(peer)}</div>'
                     f'<div class="skipped">skipped: {escape(why)}</div>')
    return f'<div class="chart">{_band(row, scale)}{"".join(parts)}</div>'


def _goals(row):
    """The goals of a case as a line of the card."""
    said = []
    for goal in row.get("goals", []):
        word = stats.AHEAD if goal["met"] else stats.BEHIND
        what = (f"goal {goal['want']:g}, best {number(goal['has'])}" if goal["kind"] == "goal" else
                f"{goal['want']:g}&#215; of {escape(goal.get('peer') or goal.get('beside', ''))}: "
                f"{goal['has']:.2f}&#215;")
        said.append(f'<span class="v {word}">{what}</span>')
    return f'<p class="unit">{" &#183; ".join(said)}</p>' if said else ""


def _card(row, labels):
    way = "lower" if row["better"] == "lower" else "higher"
    info = "" if row.get("target", True) else '<span class="info">for information</span>'
    return (f'<article><h3>{escape(row.get("title", row["case"]))}{info}</h3>'
            f'<p class="unit">{escape(row["unit"])}, {way} is better</p>'
            f'{_chart(row, labels)}{_goals(row)}</article>')


def _details(rows):
    """Everything as a table, folded away."""
    lines = []
    for row in rows:
        best, counts = row.get("best", {}), row.get("instructions", {})
        figures = {OURS: row["blitz"]}
        if "again" in row:
            figures[AGAIN] = row["again"]
        figures.update(row["peers"])
        for name, figure in figures.items():
            lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in (
                escape(row.get("title", row["case"])), escape(name), number(figure),
                number(best[name]) if name in best else "",
                number(counts[name]) if name in counts else "",
                row["runs"], percent(row["spread"]))) + "</tr>")
    head = "".join(f"<th>{h}</th>" for h in (
        "case", "who", "median", "best", "instructions", "rounds", "A/A spread"))
    return (f"<details><summary>All figures</summary><div class='wide'><table><thead><tr>{head}"
            f"</tr></thead><tbody>{''.join(lines)}</tbody></table></div></details>")


def _legend(rows, labels):
    """The meaning of the short names."""
    there = dict.fromkeys(p for r in rows for p in list(r["peers"]) + list(r.get("skipped", {})))
    said = [f"<b>{escape(p)}</b> {escape(labels[p])}" for p in there if labels.get(p, p) != p]
    return f'<p class="legend">{" &#183; ".join(said)}</p>' if said else ""


def _machine(run):
    facts = run.get("machine", {})
    items = "".join(f"<dt>{escape(k)}</dt><dd>{escape(str(v))}</dd>" for k, v in facts.items())
    return f"<dl>{items}</dl>" if items else ""


def _section(name, rows, pictures):
    run = rows[0].get("run", {})
    labels = run.get("labels", {})
    about = f'<p class="about">{escape(run["about"])}</p>' if run.get("about") else ""
    return (f'<section id="{escape(name)}"><h2>{escape(run.get("title", name))}'
            f"<code>make bench-{escape(name)}</code></h2>{about}"
            f'<div class="cards">{"".join(_card(row, labels) for row in rows)}</div>'
            f'{"".join(f"<figure>{p}</figure>" for p in pictures)}'
            f"{_legend(rows, labels)}{_details(rows)}{_machine(run)}</section>")


def _tally(found):
    """How often ours is ahead, level, behind, over all comparisons with a peer."""
    count = dict.fromkeys(WORDS, 0)
    for rows in found.values():
        for row in rows:
            if row.get("target", True):
                for word in _verdicts(row).values():
                    count[word] += 1
    return "".join(f'<li class="{word}"><b>{n}</b> {WORDS[word]}</li>'
                   for word, n in count.items() if n or word != stats.UNCLEAR)


def _pictures(folder, name):
    """The plot of a benchmark, as drawn by plot.py. The name space is for files; inside a page it is not needed."""
    drawn = sorted(folder.glob(f"{name}-*.svg")) if folder else []
    return [re.sub(' xmlns="[^"]*"', "", path.read_text(encoding="utf-8")) for path in drawn]


def page(found, folder=None):
    """The page as text. found: {name: rows}; folder: where the pictures are, if there are any"""
    links = "".join(f'<a href="#{escape(n)}">{escape(r[0].get("run", {}).get("title", n))}</a>'
                    for n, r in found.items())
    nav = f"<nav>{links}</nav>" if len(found) > 1 else ""
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>blitz: measured</title>
<style>
{CSS.read_text(encoding="utf-8")}</style>
<header>
<h1><span>blitz</span> measured</h1>
<p>Ours and its peers in one interleaved run each; the bar is the median. The shaded band is the
A/A spread: how far apart two runs of <em>ours</em> came in that same run. A bar that ends inside
it is level. N&#215; means ours is N times better: the median of the ratios within the rounds.</p>
<ul class="tally">{_tally(found)}</ul>
{nav}
</header>
<main>
{"".join(_section(name, rows, _pictures(folder, name)) for name, rows in found.items())}
</main>
</html>
"""


def write(folder):
    """Write report.html beside the figures; returns its path."""
    path = folder / "report.html"
    text = page(load(folder), folder)
    path.write_text(text, encoding="utf-8")
    return path
