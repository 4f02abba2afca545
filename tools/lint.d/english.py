"""english.py - plain English in comments and documents (docs/style.md, "Plain English").

Three rules count, folder by folder, over the comments of C, shell, Python, CMake and TOML files and
over Markdown text:

  pronoun        indefinite pronouns (whoever, nobody, ...) per 1,000 words
  long-sentence  sentences of more than 35 words
  relative       comments that open with a relative clause ("Who asks must ...")

A finished folder has at most 0.5 pronouns per 1,000 words and none of the other two. The ceilings of
unfinished folders are in tools/lint.d/english.toml; `tools/lint --lower` lowers them to today's
counts and never raises one. Each occurrence is listed if files or folders are named on the command line.
"""
import collections
import os
import re
import tomllib

from lintlib import Finding, rule

CEILINGS = "tools/lint.d/english.toml"
PRONOUN_RATE = 0.5  # per 1,000 words, in a folder without a ceiling of its own
SENTENCE_WORDS = 35
SKIP = re.compile(r"(CHANGELOG\.md|LICENSE|NOTICE|docs/glossary\.md|docs/style\.md|tools/lint\.d/english\.py|tests/lint/run)$")

PRONOUN = re.compile(r"\b(who(?:so|m)?ever|some(?:body|one)|(?:nobody|no one)|any(?:body|one)|every(?:body|one))"
                     r"(?:'s)?\b", re.I)
RELATIVE = re.compile(r"(?:who|whom|whoever|whomever|what|whatever)\b", re.I)
WORD = re.compile(r"\b[A-Za-z][A-Za-z0-9'-]*(?![\w.]*_)\b")  # an identifier is not a word
HASH = re.compile(r"(?:^|(?<=\s))#(?!!)(?:[ \t]+|$)(.*)")
DOCSTRING = re.compile(r'(?:^|\n)[ \t]*[rRbBfF]?("""|\'\'\')(.*?)\1', re.S)
# A line that starts a sentence of its own: a list item, a labelled line, an invariant, a pairing.
ITEM = re.compile(r"\s*(?:[-*+|]|\d+[.)]|[A-Z]{1,2}\d+\w?\b|\[\w+\]|[A-Z]\w*:|\w+\(\)|@\w+|\S+ {2,}\S)")
# The end of a sentence. The next one starts with a capital, a digit, a name of code or a path.
END = re.compile(r"(?<=[.!?])[)\"'*_]*\s+(?=[\"'(*_\[]*(?:[A-Z0-9]|/\w|blitz\b|\w+[/_.(]\w*))")


def folder_of(path):
    parts = path.split("/")
    if len(parts) == 1:
        return "."
    return "/".join(parts[:2]) if parts[0] in ("src", "tests") and len(parts) > 2 else parts[0]


def blocks(f):
    """(line, [text of each line]) of each comment or, in Markdown, of each paragraph."""
    if f.is_c:
        return c_blocks(f)
    if f.path.endswith(".md"):
        return markdown_blocks(f)
    if f.is_python:
        return python_blocks(f)
    if f.is_shell or f.path.endswith((".toml", ".cmake", ".txt", ".yml", ".clang-tidy")) or f.name == "Makefile":
        return hash_blocks(f)
    return []


def c_blocks(f):
    last = None
    for t in f.comments:
        lines = [re.sub(r"^\s*(?:/\*+|\*+/|\*(?!\*)|//+)?\s?", "", s).replace("*/", "") for s in t.text.split("\n")]
        if last is not None and t.text.startswith("//") and last[0] + len(last[1]) == t.line:
            last[1].extend(lines)
            continue
        if last is not None:
            yield last
        last = (t.line, lines)
    if last is not None:
        yield last


def markdown_blocks(f):
    """Paragraphs and table cells; fenced and indented code is left out."""
    fenced, begin, lines = False, 0, []
    for n, line in enumerate(f.lines + [""], 1):
        fence = line.lstrip().startswith("```")
        row = line.startswith("|")
        if fence or fenced or row or not line.strip() or line.startswith(("    ", "#")):
            if lines:
                yield begin, lines
            lines = []
            fenced ^= fence
            if row and not fenced:
                for cell in line.strip("|").split("|"):
                    yield n, ["| " + cell.strip()]  # the bar: a cell may be a relative clause
        else:
            if not lines:
                begin = n
            lines.append(line)


def python_blocks(f):
    for m in DOCSTRING.finditer(f.text):
        yield f.text.count("\n", 0, m.start(2)) + 1, m.group(2).split("\n")
    yield from hash_blocks(f, DOCSTRING.sub(lambda m: "\n" * m.group().count("\n"), f.text).split("\n"))


def hash_blocks(f, lines=None):
    begin, found = 0, []
    for n, line in enumerate((lines or f.lines) + [""], 1):
        m = HASH.search(line)
        whole = m is not None and not line[:m.start()].strip()
        if found and not whole:
            yield begin, found
            found = []
        if m is not None and whole:
            begin = begin if found else n
            found.append(m.group(1))
        elif m is not None:
            yield n, [m.group(1)]


def plain(line):
    """The line without code, links and markup. A list of names counts as one: docs/where-to-call.md has rows of them."""
    line = re.sub(r"`[^`]*`(?:, `[^`]*`)*", "Code", line)
    line = re.sub(r"\]\([^)]*\)", "]", line)
    return line


def sentences(begin, lines):
    """(line, text) of each sentence of a block."""
    parts, start = [], begin
    for i, line in enumerate(lines + [""]):
        drawn = (re.search(r"\S {3,}\S", line.strip()) is not None or line.startswith("    ")
                 or re.match(r"\s*(?:covers|needs|defines): ", line) is not None)
        if (not line.strip() or drawn or ITEM.match(line)) and parts:
            yield from cut(start, parts)
            parts = []
        if line.strip() and not drawn:
            start = start if parts else begin + i
            parts.append(plain(line))


def cut(start, parts):
    text = "\n".join(parts)
    at = 0
    for m in list(END.finditer(text)) + [None]:
        end = m.start() if m else len(text)
        piece = text[at:end]
        lead = len(piece) - len(piece.lstrip())
        yield start + text.count("\n", 0, at + lead), piece.strip()
        at = m.end() if m else end


class Count:
    def __init__(self):
        self.words = 0
        self.pronouns, self.long, self.relative = [], [], []

    def rate(self):
        return 1000.0 * len(self.pronouns) / self.words if self.words else 0.0


def count_file(f, count):
    for begin, lines in blocks(f):
        for i, line in enumerate(lines):
            line = plain(line)
            count.words += len(WORD.findall(line))
            count.pronouns += [(f.path, begin + i, m.group()) for m in PRONOUN.finditer(line)]
        first = True
        for n, text in sentences(begin, lines):
            words = len(WORD.findall(text))
            if words > SENTENCE_WORDS:
                count.long.append((f.path, n, f"{words} words"))
            if first and words > 1 and RELATIVE.match(text.lstrip("*_- ")) and not text.rstrip().endswith("?"):
                count.relative.append((f.path, n, " ".join(text.split()[:4])))
            first = False


def counts(tree):
    """folder -> Count of every folder that has a chosen file; counted once a run."""
    if not hasattr(tree, "english"):
        wanted = {folder_of(f.path) for f in tree.files}
        tree.english = collections.defaultdict(Count)
        for path in tree.all:
            if folder_of(path) in wanted and not SKIP.search(path):
                f = tree.file(path)
                if f.text:
                    count_file(f, tree.english[folder_of(path)])
    return tree.english


def ceilings(root):
    path = os.path.join(root, CEILINGS)
    if not os.path.exists(path):
        return {}
    with open(path, "rb") as f:
        return tomllib.load(f)


def judge(tree, key, measure, ceiling, unit, mend):
    """Findings of one rule: the folders above their ceiling, and each occurrence if files were named."""
    limits, chosen = ceilings(tree.root), {f.path for f in tree.files}
    for folder, count in sorted(counts(tree).items()):
        limit = limits.get(folder, {}).get(key, ceiling)
        places, value = getattr(count, key), measure(count)
        over = value > limit
        listed = over and folder not in limits or not tree.whole
        if over:
            path, line, _ = places[0]
            yield Finding(path, line, f"folder {folder} has {value:.4g} {unit}, its ceiling is {limit:.4g}: {mend}")
        if listed:
            for path, line, text in places:
                if path in chosen:
                    yield Finding(path, line, f"{text}: {mend}", warning=True)


@rule("pronoun", "indefinite pronouns (nobody, whoever, ...) in comments: at most 0.5 per 1,000 words a folder")
def pronoun(tree):
    yield from judge(tree, "pronouns", Count.rate, PRONOUN_RATE, "indefinite pronouns per 1,000 words",
                     "name the subject")


@rule("long-sentence", "lists sentences of more than 35 words; a finished folder has none")
def long_sentence(tree):
    yield from judge(tree, "long", lambda c: len(c.long), 0, f"sentences over {SENTENCE_WORDS} words",
                     "one idea a sentence")


@rule("relative", "no comment opens with a relative clause: Who, What, Whoever")
def relative(tree):
    yield from judge(tree, "relative", lambda c: len(c.relative), 0, "comments that open with a relative clause",
                     "begin with a noun or a verb")


def row(folder, limit):
    return f'\n["{folder}"]\n' + "".join(f"{k} = {v}\n" for k, v in limit.items())


def lower(tree):
    """Lower the ceilings of the chosen folders to today's counts; remove those of finished folders.
    Return the changes."""
    old, chosen = ceilings(tree.root), {folder_of(f.path) for f in tree.files}
    with open(os.path.join(tree.root, CEILINGS), encoding="utf-8") as f:
        head = f.read().split("\n[")[0].rstrip("\n")
    rows, changed = [], []
    for folder, limit in sorted(old.items()):
        if folder not in chosen:
            rows.append(row(folder, limit))
            continue
        count = counts(tree)[folder]
        now = {"pronouns": min(limit["pronouns"], max(PRONOUN_RATE, round(count.rate() + 0.05, 1))),
               "long": min(limit["long"], len(count.long)), "relative": min(limit["relative"], len(count.relative))}
        if now != limit:
            changed.append(f"{folder}: {limit} -> {now}")
        if now["pronouns"] > PRONOUN_RATE or now["long"] or now["relative"]:
            rows.append(row(folder, now))
    with open(os.path.join(tree.root, CEILINGS), "w", encoding="utf-8") as f:
        f.write(head + "\n" + "".join(rows))
    return changed
