"""Goals of a case besides being ahead: a figure, a multiple of a peer, a multiple of ours.

A goal is compared with our best round, which shows what the machine and our code can do. Other load on a
shared machine only makes a round worse: two of our workers on one CPU say nothing about our code. The same
holds for a multiple of another case of ours (`speedup`, with `beside`). A multiple of a peer (`times`) is the
median of the ratios within the rounds, as all ratios are; below 1 it is a price we allow ourselves, and
decides in the place of "ahead". Such a price is also kept by a row that is level by instructions: the placement
of code alone moves a time of 10 ns by some percent.
"""

from . import stats
from .spec import OURS


def _goal(case, line):
    best = line["best"][OURS]
    met = best <= case.goal if case.better == "lower" else best >= case.goal
    return {"kind": "goal", "want": case.goal, "has": best, "met": met}


def _times(case, line):
    for peer, want in case.times.items():
        if peer in line["ratios"]:
            has = line["ratios"][peer]
            is_level = want < 1 and peer in line.get("by_instructions", [])
            yield {"kind": "times", "peer": peer, "want": want, "has": has, "met": has >= want or is_level}


def _speedup(case, line, lines):
    before = next((other for other in lines if other["case"] == case.beside), None)
    if before is None:
        return []
    has = stats.ratio(line["best"][OURS], before["best"][OURS], case.better)
    return [{"kind": "speedup", "beside": case.beside, "want": case.speedup, "has": has,
             "met": has >= case.speedup}]


def with_goals(cases, lines):
    """The rows, each with its list of goals: {kind, want, has, met, and peer or beside}."""
    result = []
    for case, line in zip(cases, lines, strict=True):
        goals = [_goal(case, line)] if case.goal else []
        goals += _times(case, line)
        if case.beside:
            goals += _speedup(case, line, lines)
        allowed = {g["peer"]: stats.LEVEL for g in goals
                   if g["kind"] == "times" and g["want"] < 1 and g["met"]}
        result.append(dict(line, goals=goals, verdicts={**line["verdicts"], **allowed}))
    return result


def of(line, kind):
    """The goals of a row of that kind; rows written by others need not have any."""
    return [goal for goal in line.get("goals", []) if goal["kind"] == kind]


def missed(line):
    return [goal for goal in line.get("goals", []) if not goal["met"]]


def said(line, goal):
    """A goal as words."""
    if goal["kind"] == "goal":
        way = "at most" if line["better"] == "lower" else "at least"
        return f"{line['case']}: {goal['has']:.4g} {line['unit']} instead of {way} {goal['want']:g}"
    whom = goal.get("peer") or goal.get("beside")
    return f"{line['case']}: {goal['has']:.2f}x of {whom} instead of {goal['want']:g}x"
