"""shape.py - the public calls have one shape, so that a reader who knows some of them knows all.

docs/style.md has the rules for people. Each finding names the rule it breaks; a call that is better off otherwise
says so beside it, with `lint: allow api-shape: why`.
"""
import re

import api
from lintlib import Finding, rule

# Futures that stand for no call: values to make others of.
SIMPLE_FUTURES = {"blitz_ready", "blitz_map", "blitz_then", "blitz_defer"}
# blitz_task_join() has two futures: of a join with a deadline, and of one without.
ALSO_CALLS = {"blitz_task_join_linked"}
FLAG = re.compile(r"(is|has|are|no|require|again)(_\w+)?$")
ENDS = re.compile(r"(drop|free|destroy|delete|release|cleanup|finalize)(_\w+)?$")
NUMBERS = {"int", "unsigned", "char", "signed", "long", "short", "uint8_t", "uint32_t"}


class Call:
    """A public function: its name, its result, and each parameter as (type tokens, name)."""

    def __init__(self, f, line, comment, name, result, params):
        self.f, self.line, self.comment, self.name = f, line, comment, name
        self.result = [w for w in result if w not in ("static", "inline", "extern")]
        self.params = [p for p in map(parameter, split(params[1:-1])) if p[0] != ["void"] or p[1]]

    def find(self, text):
        return Finding(self.f.path, self.line, f"{self.name}: {text}")


def split(tokens):
    """Split at the commas that stand in no bracket."""
    found, depth = [[]], 0
    for t in tokens:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(t, 0)
        if t == "," and depth == 0:
            found.append([])
        else:
            found[-1].append(t)
    return [p for p in found if p]


def parameter(tokens):
    """(type, name). Of a pointer to a function the type is ["(*)"] and what follows its name."""
    if "(" in tokens:
        at = tokens.index("(")
        return ["(*)"] + tokens[at + 4:], tokens[at + 2] if len(tokens) > at + 2 else ""
    if "[" in tokens:
        at = tokens.index("[")
        return tokens[:at - 1] + ["*"], tokens[at - 1]
    if len(tokens) > 1 and re.match(r"[A-Za-z_]\w*$", tokens[-1]):
        return tokens[:-1], tokens[-1]
    return tokens, ""


def calls(tree):
    for f in tree.c_files("include/"):
        for comment, line, words in api.declarations(f):
            found = api.function(words)
            if found is not None and not found[0].endswith("_"):
                yield Call(f, line, comment, *found)


def is_result(kind, name):
    """May this parameter stand behind the options: a pointer that is written to, or a deadline?"""
    return ("*" in kind and "const" not in kind) or kind == ["blitz_deadline"]


def deadline(c):
    for k, n in c.params[:-1]:
        if k == ["blitz_deadline"] and n == "until":
            yield c.find("`until` is the last argument; results come before it")


def predicate(c):
    if re.search(r"_(is|has)_|_ok$", c.name) and c.result != ["bool"]:
        yield c.find("a predicate returns bool; one that can fail is no predicate: give the answer by pointer")
    for k, n in c.params:
        if FLAG.match(n) and set(k) <= NUMBERS:
            yield c.find(f"the flag `{n}` is a bool")


def options(c):
    if re.search(r"_new_with|_with_opts$", c.name):
        yield c.find("options are an argument of _new(), NULL for none")
    for i, (k, _) in enumerate(c.params):
        if any(t.endswith(("_config", "_options", "_attr")) for t in k):
            yield c.find("a struct of options is called noun_opts")
        if not any(t.endswith("_opts") for t in k):
            continue
        behind = c.params[i + 1:]
        if not all(is_result(*p) for p in behind):
            yield c.find("the options stand behind all arguments but results and the deadline")
    if c.name.endswith("_new"):
        if not (c.params and c.params[-1][0][-2:] == ["*", "*"]):
            yield c.find("_new() gives the object by its last argument, and returns 0 or -errno")
        if any(k[0] == "(*)" for k, _ in c.params):
            yield c.find("functions that are optional belong into the options")


def future(c, names):
    first = c.params[0][0] if c.params else []
    is_init = len(first) == 2 and re.match(r"blitz_\w+_future$", first[0]) and c.result == ["void"]
    if not is_init:
        return
    stem = c.name.removesuffix("_future_init")
    if stem == c.name:
        yield c.find("a future is made by the name of its call and _future_init")
    elif stem not in names | SIMPLE_FUTURES | ALSO_CALLS:
        yield c.find(f"there is no call {stem}() whose future it is")


def pair(c, names):
    if re.search(r"_(free|destroy|delete|close_and_free)$", c.name) and c.name != "blitz_drop_free":
        yield c.find("what was made by new is given up by unref, what was made by init needs no end")
    if c.name.endswith("_new"):
        noun = c.name.removesuffix("_new")
        ends = {f"{noun}_unref"}, {f"{noun}_sender_drop", f"{noun}_receiver_drop"}
        if not any(e <= names for e in ends):
            yield c.find(f"there is no {noun}_unref()")


def descriptor(c):
    for k, n in c.params:
        if re.match(r"(fds?|pipe|socket)$", n) and "int" in k:
            yield c.find(f"`{n}` is a blitz_fd: on other systems a descriptor is no int")
    if c.name.endswith(("_release", "_fd")) and c.result == ["int"] and len(c.params) < 2:
        yield c.find("a descriptor is given by pointer: a number cannot say both it and an error")


@rule("api-shape", "public calls have one shape: docs/style.md, section 3")
def api_shape(tree):
    found = list(calls(tree))
    names = {c.name for c in found}
    for c in found:
        yield from deadline(c)
        yield from predicate(c)
        yield from options(c)
        yield from future(c, names)
        yield from pair(c, names)
        yield from descriptor(c)
        if "_Thread_local" in c.result or "__thread" in c.result:
            yield c.find("no thread-local is exported: give a call")
    for f in tree.c_files("include/"):
        yield from members(f)


def members(f):
    """Structs and macros: destructors, flags, deadlines of functions in tables, results of futures."""
    text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), f.text, flags=re.S)
    for m in re.finditer(r"\(\*(\w+)\)\(([^()]*)\)", text):
        name, params = m.group(1), " ".join(m.group(2).split())
        line = text.count("\n", 0, m.start()) + 1
        if ENDS.match(name) and params != "void *value, void *ctx":
            yield Finding(f.path, line, f"{name}: a destructor is void (*{name})(void *value, void *ctx)")
        if re.search(r"blitz_deadline until,", params):
            yield Finding(f.path, line, f"{name}: `until` is the last argument")
        if re.search(r"\bint (fds?|pipe)\b", params):
            yield Finding(f.path, line, f"{name}: a descriptor is a blitz_fd")
    for m in re.finditer(r"^    (int|unsigned|unsigned char|char) (\w+)(, \w+)*;", text, re.M):
        if FLAG.match(m.group(2)):
            yield Finding(f.path, text.count("\n", 0, m.start()) + 1, f"the flag `{m.group(2)}` is a bool")
    for m in re.finditer(r"^#define (BLITZ_\w+|blitz_\w+)\(([^)]*)\)", text, re.M):
        names = [n.strip().rstrip("_") for n in m.group(2).split(",")]
        if "until" in names[:-1] and not m.group(1).endswith("_"):
            yield Finding(f.path, text.count("\n", 0, m.start()) + 1, f"{m.group(1)}: `until` is the last argument")
    yield from results(f, text)


def results(f, text):
    for m in re.finditer(r"typedef struct (blitz_\w+_future) \{\n(.*?)\n\}", text, re.S):
        line, body = text.count("\n", 0, m.start()) + 1, m.group(2)
        if not re.match(r"\s*blitz_future future;", body):
            yield Finding(f.path, line, f"{m.group(1)}: its first member is `blitz_future future`")
        bad = re.search(r"\bint(?:64_t)? (error|output|chosen|status|rc)\b", body)
        if bad:
            yield Finding(f.path, line, f"{m.group(1)}: what the call would have returned is in `result`, not `{bad.group(1)}`")


# Two names of one idea, which are one number on Linux only: the first is used.
CHOSEN = {"ENOTSUP": "EOPNOTSUPP", "EWOULDBLOCK": "EAGAIN"}
ERROR = re.compile(r"(?<![\w-])-?(E[A-Z][A-Z0-9]{1,})\b")
LISTED = "include/blitz/error.h"


@rule("error-name", "errors have one name, and those that the headers name are listed in blitz/error.h")
def error_name(tree):
    listed = set(ERROR.findall(tree.file(LISTED).text)) if tree.has(LISTED) else None
    for f in tree.c_files("include/", "src/", "tests/", "examples/"):
        for t in f.tokens:
            if f.path == LISTED or t.kind not in ("ident", "comment"):
                continue
            words = [t.text] if t.kind == "ident" else re.findall(r"-(E[A-Z][A-Z0-9]+)\b", t.text)
            for word in words:
                if word in CHOSEN:
                    yield Finding(f.path, t.line, f"{word}: say {CHOSEN[word]}, which is another number elsewhere")
                elif t.kind == "comment" and f.under("include/") and listed is not None and word not in listed:
                    yield Finding(f.path, t.line, f"{word} is not in blitz/error.h: does every system have it?")
