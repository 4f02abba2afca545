"""atomics.py - every order has a reason, and every reason a partner.

An atomic operation is a promise to another line of code. The essay of a file names the promises by letter,
`[A] push: tail release -> take: tail acquire`; the operations cite them. These checks require that every
operation has a reason, that every cited letter exists, and that both halves of each pairing are present. To
delete one half is the classic way to lose a wake-up.
"""
import os
import re

from calls import asm_strings
from lintlib import Finding, rule

OP = re.compile(r"bz_(load|store|equals|below|test|xchg|cas|fetch|fence)_(\w+)")
RAW = re.compile(r"__atomic_\w+|__sync_\w+|atomic_\w+|_Atomic|memory_order\w*|BZ_A_[A-Z_]+|"
                 r"__c11_atomic_\w+|__builtin_ia32_[lms]fence|_mm_[lms]fence")
FENCE_ASM = re.compile(r"\b(lock|mfence|lfence|sfence|xchg\w?|cmpxchg\w*|dmb|dsb|ldax?r\w*|stlx?r\w*|"
                       r"fence\s+\w+)\b")
CITED = re.compile(r"(?<![\w\]\)])\[([A-Z]\d?)\]")
DEFINED = re.compile(r"^[\s/*]*\[([A-Z]\d?)\]\s+(?=\S)")
FILE_NAME = re.compile(r"\b[\w/]+\.[chS]\b")
HOME = "src/base/bz_atomic.h"


@rule("raw-atomic", "no raw atomics outside base/bz_atomic.h")
def raw_atomic(tree):
    for f in tree.c_files("src/", "include/"):
        if f.path == HOME:
            continue
        for line, _, name in f.includes():
            if name == "stdatomic.h":
                yield Finding(f.path, line, "<stdatomic.h>: include \"base/bz_atomic.h\"")
        code = f.code
        for i, t in enumerate(code):
            if t.kind != "ident":
                continue
            if RAW.fullmatch(t.text) and code[i - 1].text not in ("->", "."):
                yield Finding(f.path, t.line, f"{t.text}: use the operations of base/bz_atomic.h, which "
                                              f"the model checker can replace")
            elif t.text == "volatile" and code[i - 1].text not in ("asm", "__asm__", "__asm"):
                yield Finding(f.path, t.line, "volatile orders nothing between threads: use bz_atomic(T); "
                                              "if it is not about threads, say so with `lint: allow`")
        if f.layer in ("arch", "os"):
            continue
        for t in asm_strings(f):
            m = FENCE_ASM.search(t.text)
            if m:
                yield Finding(f.path, t.line, f"the instruction `{m.group()}` is an atomic in disguise: "
                                              f"use base/bz_atomic.h")


class Op:
    """An atomic operation and the comments that speak for it."""

    def __init__(self, name, line, reasons):
        self.name, self.line = name, line
        self.reason = " ".join(reasons)
        m = OP.fullmatch(name)
        self.kind, order = m.group(1), m.group(2).split("_")
        self.releases = self.kind == "fence" or any(
            o in ("rel", "release", "acqrel", "sc", "seqcst") for o in order) and self.kind not in ("load", "equals", "below", "test")
        self.acquires = self.kind == "fence" or any(
            o in ("acq", "acquire", "acqrel", "sc", "seqcst") for o in order) and self.kind != "store"
        self.ordered = self.releases or self.acquires


def words(comment):
    return re.sub(r"^\s*(/\*+|//|\*(?!/))|\*/\s*$", " ", comment, flags=re.M).strip()


def operations(f):
    """Every Op of the file. A comment speaks for an operation if it stands on the operation's line,
    inside or at the end of its statement, or on the lines just above line or statement."""
    if hasattr(f, "_operations"):
        return f._operations
    starting, alone = {}, {}  # comments by first line; those without code before them by last line
    code_lines = {n for t in f.code for n in (t.line, t.end_line)}
    for c in f.comments:
        starting.setdefault(c.line, []).append(words(c.text))
        if c.line not in code_lines:
            alone[c.end_line] = c

    def above(line):
        found = []
        while line - 1 in alone:
            c = alone[line - 1]
            found.append(words(c.text))
            line = c.line
        return found

    code, found = f.code, []
    for i, t in enumerate(code[:-1]):
        if t.kind != "ident" or not OP.fullmatch(t.text) or code[i + 1].text != "(":
            continue
        if code[i - 1].text == "define":
            continue
        first = last = i
        while first > 0 and code[first - 1].text not in (";", "{", "}", "#"):
            first -= 1
        while last + 1 < len(code) and code[last].text not in (";", "{", "}", "#"):
            last += 1
        start, stop = code[first].line, code[last].line
        reasons = above(start) + (above(t.line) if t.line > start else [])
        reasons += [text for n in range(start, stop + 1) for text in starting.get(n, [])]
        found.append(Op(t.text, t.line, reasons))
    f._operations = found
    return found


@rule("atomic-reason", "every atomic operation carries its reason: a pairing's letter, or a sentence")
def atomic_reason(tree):
    for f in tree.c_files("src/", "include/"):
        if f.path == HOME:
            continue
        for op in operations(f):
            if CITED.search(op.reason):
                continue
            n = len(op.reason.split())
            if n == 0:
                yield Finding(f.path, op.line, f"{op.name} without its reason: cite its pairing, /* [A] */, or "
                                               f"say in a line why this order is enough")
            elif not op.ordered and n < 2:
                yield Finding(f.path, op.line, f"{op.name}: \"{op.reason}\" is no reason: say why relaxed is "
                                               f"enough (\"relaxed: we are its only writer\")")
            elif op.ordered and n < 4:
                yield Finding(f.path, op.line, f"{op.name}: an order without a named partner is a guess: cite "
                                               f"the letter of its pairing, or name the other half")


def definitions(f):
    """letter -> (line, text of the definition up to the next letter or blank line)."""
    if hasattr(f, "_definitions"):
        return f._definitions
    found = {}
    for c in f.comments:
        current = None
        for n, line in enumerate(c.text.split("\n"), c.line):
            m = DEFINED.match(line)
            body = words(line)
            if m and len(body.split()) >= 4:
                current = m.group(1)
                found[current] = [n, body]
            elif current and body:
                found[current][1] += " " + body
            elif not body:
                current = None
    f._definitions = found
    return found


def citations(f):
    """(line, letter, file name it belongs to or None) of each letter cited in a comment."""
    for c in f.comments:
        home = None
        for n, line in enumerate(c.text.split("\n"), c.line):
            if DEFINED.match(line) and len(words(line).split()) >= 4:
                continue
            for m in re.finditer(r"\b([\w/]+\.[chS])\b|(?<![\w\]\)])\[([A-Z]\d?)\]", line):
                if m.group(1):
                    home = m.group(1)
                else:
                    yield n, m.group(2), home


def twins(tree, f):
    """The file and its other half: runq.c and runq.h."""
    stem = os.path.splitext(f.path)[0]
    return [f] + [tree.file(p) for p in (stem + ".c", stem + ".h") if p != f.path and tree.has(p)]


def named(tree, name):
    return [tree.file(p) for p in tree.all if p == name or p.endswith("/" + name)]


@rule("pairing", "cited letters exist in an essay, and each pairing still has both its halves")
def pairing(tree):
    for f in tree.c_files("src/", "include/"):
        near = twins(tree, f)
        for line, letter, home in citations(f):
            places = near + (named(tree, home) if home else [])
            if not any(letter in definitions(p) for p in places):
                yield Finding(f.path, line, f"[{letter}] is in no essay of {' or '.join(p.path for p in places)}: "
                                            f"write the pairing there, or cite another file by name")
        for letter, (line, text) in sorted(definitions(f).items()):
            yield from halves(tree, f, near, letter, line, text)


def halves(tree, f, near, letter, line, text):
    mark = f"[{letter}]"
    ops = [op for p in near for op in operations(p) if mark in op.reason]
    cited = sum(1 for p in near for _, l, home in citations(p)
                if l == letter and (home is None or any(p2.path.endswith(home) for p2 in near)))
    partner = [n for n in FILE_NAME.findall(text) if not any(p.path.endswith(n) for p in near)]
    if partner and re.search(r"\block", text):
        return  # a lock of that file has both halves
    if cited == 0 and not ops:
        yield Finding(f.path, line, f"nothing cites {mark}: put the letter on both its halves, or drop it")
    elif partner:
        return  # one half here, the other in the file that the essay names
    elif re.search(r"membarrier|fence|seq_?cst|store.*before.*load|compiler.barrier", text, re.I):
        if cited < 2 and not any(op.kind in ("cas", "xchg", "fetch") for op in ops):
            yield Finding(f.path, line, f"{mark} is cited once: name its other half where it happens")
    elif not any(op.releases for op in ops):
        yield Finding(f.path, line, f"{mark} has no releasing half: no store, swap or CAS with release cites it")
    elif not any(op.acquires for op in ops):
        yield Finding(f.path, line, f"{mark} has no acquiring half: no load, swap or CAS with acquire cites it")
