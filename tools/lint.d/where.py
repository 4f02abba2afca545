"""where.py - which call may be made from where: read from the headers, shown in docs/where-to-call.md.

The mark is one sentence behind `Suspends:`, "Call from ...". Without it a call may be made anywhere. "as blitz_x()" is
what blitz_x() says.
"""
import re

import shape
from lintlib import Finding, rule

PAGE = "docs/where-to-call.md"
BEGIN, END = "<!-- from the headers: tools/calls --write -->", "<!-- end -->"

# The words behind "Call from", and where that is: any place, tasks, threads with a runtime in the options, polls.
PLACES = (
    (r"a poll", "poll"),
    (r"a task, or (from )?any thread with a runtime", "runtime"),
    (r"any ?(thread|where)|a task or any thread|a task, a job,? or (any|a plain) thread", "any"),
    (r"(the|a) (thread|task) that|whoever|the caller of|the owner", "any"),
    (r"a plain thread", "thread"),
    (r"a task", "task"),
)
# place, does it suspend -> fiber or forked job, stackless task, plain thread
CELLS = {
    ("any", False): ("yes", "yes", "yes"),
    ("any", True): ("waits", "waits, on a stack", "sleeps"),
    ("task", False): ("yes", "yes", "no"),
    ("task", True): ("waits", "waits, on a stack", "no"),
    ("runtime", False): ("yes", "yes", "with `opts.runtime`"),
    ("runtime", True): ("waits", "waits, on a stack", "with `opts.runtime`"),
    ("thread", False): ("no", "no", "blocks"),
    ("poll", False): ("no", "yes", "no"),
}


def flat(comment):
    lines = (re.sub(r"^\s*/?\*+/?\s?", "", line) for line in comment.split("\n"))
    return " ".join(" ".join(lines).split())


def said(comment):
    """(place, or None if the words are not known; the name of a call that it refers to, or None)"""
    text = flat(comment)
    m = re.search(r"Suspends:(.*?)(?:Returns:|Owns:|$)", text)
    text = m.group(1) if m else text
    if "blocks the calling thread" in text:
        return "thread", None
    m = re.search(r"[Cc]all (?:it )?(from|where) ?([^.;]*)", text)
    if m is None:
        as_other = re.search(r"\bas (blitz_\w+)\(\)", text)
        return ("any", as_other.group(1)) if as_other else ("any", None)
    if m.group(1) == "where":
        return "any", None
    for words, place in PLACES:
        if re.match(words, m.group(2)):
            return place, None
    return None, None


def marked(f, line):
    """Is BLITZ_SUSPENDS in the declaration that begins there?"""
    text = "\n".join(f.lines[line - 1:line + 5])
    return "BLITZ_SUSPENDS" in re.split(r"[;{]", text)[0]


def rows(tree):
    """[(header, cells, names)], and what could not be read as findings."""
    found, bad, by_name = {}, [], {}
    for c in shape.calls(tree):
        by_name.setdefault(c.name, (c, *said(c.comment)))
    for c, place, other in by_name.values():
        if other in by_name and by_name[other][1] is not None:
            place = by_name[other][1]
        key = (place, marked(c.f, c.line))
        if key not in CELLS:
            bad.append(c.find("where may it be called? Say `Call from anywhere`, `any thread`, `a task` or `a poll`"))
            continue
        is_safe = "also from a signal handler" in flat(c.comment)
        cells = (*CELLS[key], "yes" if is_safe else "no")
        found.setdefault((c.f.name, cells), []).append(c.name)
    return found, bad


def table(tree):
    found, _ = rows(tree)
    lines = ["| Header | Fiber, forked job | Stackless task | Plain thread | Signal handler | Calls |", "|---|---|---|---|---|---|"]
    for (header, cells), names in sorted(found.items()):
        lines.append(f"| `{header}` | {' | '.join(cells)} | {', '.join(f'`{n}`' for n in sorted(names))} |")
    return "\n".join(lines)


def page(text, tree):
    """The page with its table as the headers have it."""
    head, tail = text.split(BEGIN)[0], text.split(END, 1)[1]
    return f"{head}{BEGIN}\n{table(tree)}\n{END}{tail}"


@rule("api-where", "docs/where-to-call.md says of each public call what its header says")
def api_where(tree):
    _, bad = rows(tree)
    yield from bad
    if not tree.whole or not tree.has(PAGE):
        return
    text = tree.file(PAGE).text
    if BEGIN not in text or END not in text:
        yield Finding(PAGE, 1, f"the marks {BEGIN} and {END} are missing")
    elif page(text, tree) != text:
        yield Finding(PAGE, 1, "the table is not what the headers say: tools/calls --write")
