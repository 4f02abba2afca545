"""prose.py - what a file says of itself, and what the tree must not say of the world outside."""
import re
import socket

from lintlib import Finding, rule

NAME = r"[\w.+/-]+"


def opening(f):
    """The comment a C file opens with, as one string, or None."""
    first = f.tokens[0] if f.tokens else None
    return first.text if first is not None and first.kind == "comment" else None


@rule("essay", "every file in src/ and include/ opens with `name.c - what it is`; every script with a comment")
def essay(tree):
    for f in tree.files:
        if f.is_c and f.under("src/", "include/"):
            yield from c_essay(f)
        elif f.under("tools/", ".ci/") and (f.is_shell or f.is_python):
            if not re.match(r'(#!.*\n)?(#[^\n]*\n)*(# \w|r?""")', f.text):
                yield Finding(f.path, 1, "a script opens with a comment that says what it does and why")


def c_essay(f):
    text = opening(f)
    m = text and re.match(rf"/\*+\s*(?:\*\s*)?({NAME}) - (.*)", text, re.S)
    if not m:
        yield Finding(f.path, 1, f"no opening essay: begin with /* {f.name} - what it is, why so, what was rejected */")
    elif not f.path.endswith(m.group(1)):
        yield Finding(f.path, 1, f"the essay speaks of {m.group(1)}: this file is {f.name}")
    elif len(m.group(2).split()) < 6:
        yield Finding(f.path, 1, "the essay is a title: say what it is and why it is so")


URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[\w\[$]", re.I)
ROOTS = "usr|home|root|etc|opt|var|work|mnt|media|srv|bin|sbin|lib|lib64|boot|run|data|workspace|Users|Volumes"
PATH = re.compile(r"(?<![\w.$})\]*~/>-])/(?:" + ROOTS + r")(?:/[\w.+*-]*)*(?![\w-])|\b[A-Z]:\\\\?\w")
PATH_OK = re.compile(r"/usr/bin/env|/bin/(?:sh|bash)|/etc/os-release|/(?:bin|lib|usr|etc|run)/?")
HOST = re.compile(r"(?<![\w./@-])(?:[a-z0-9-]+\.)+(?:com|org|edu|gov)(?![\w(.-])|"
                  r"(?<![\w./@-])(?:[a-z0-9-]+\.){2,}(?:net|io|dev|local|lan|internal|corp|cloud)(?![\w(.-])|"
                  r"[\w.]+@[\w-]+\.\w+")
ADDRESS = re.compile(r"(?<![\w.])(?!127\.|0\.0\.0\.0|255\.|192\.0\.2\.|198\.51\.100\.)(?:\d{1,3}\.){3}\d{1,3}(?![\w.])")
REGISTRY = re.compile(r"\b(github|gitlab|bitbucket|sourceforge|pypi|npmjs|dockerhub|docker\.io|ghcr|quay\.io|"
                      r"crates\.io|artifactory|maven central)\b", re.I)


@rule("place", "no host name, no URL, no absolute path, no registry: the tree speaks of blitz alone")
def place(tree):
    here = socket.gethostname()
    local = re.compile(rf"\b{re.escape(here)}\b") if len(here) > 5 and here != "localhost" else None
    for f in tree.files:
        for n, line in f.prose:
            yield from place_line(f, n, line, local)


def place_line(f, n, line, local):
    if URL.search(line):
        yield Finding(f.path, n, f"a URL ({URL.search(line).group()}...): say it in words")
        return
    for m in PATH.finditer(line):
        path = m.group().rstrip(".")
        if not PATH_OK.fullmatch(path):
            yield Finding(f.path, n, f"the absolute path {path}: make it relative, or ask the system for it")
    for pattern, what in ((HOST, "host name"), (ADDRESS, "network address"), (REGISTRY, "registry")):
        m = pattern.search(line)
        if m:
            yield Finding(f.path, n, f"the {what} {m.group()}: the tree speaks of blitz alone")
    if local and local.search(line):
        yield Finding(f.path, n, "the name of this machine")


UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK|TBD)\b")


@rule("unfinished", "no TODO, FIXME, XXX: do it, or tell it where gaps are told")
def unfinished(tree):
    for f in tree.files:
        for n, line in f.prose:
            m = UNFINISHED.search(line)
            if m:
                yield Finding(f.path, n, f"{m.group()}: do it now, or say in prose what is not there")


@rule("text", "UTF-8, no tabs outside make, no trailing blanks, one newline at the end")
def text(tree):
    for f in tree.files:
        if not f.text:
            continue
        if "\ufffd" in f.text:
            yield Finding(f.path, 1, "not UTF-8")
        if "\r" in f.text:
            yield Finding(f.path, 1, "carriage returns: lines end in a newline alone")
        if not f.text.endswith("\n") or f.text.endswith("\n\n"):
            yield Finding(f.path, len(f.lines), "end the file with one newline")
        tabs = not (f.name == "Makefile" or f.path.endswith((".mk", ".diff", ".patch", ".S")))
        for n, line in enumerate(f.lines, 1):
            if line.endswith((" ", "\t")):
                yield Finding(f.path, n, "blanks at the end of the line")
            elif tabs and line.startswith("\t"):
                yield Finding(f.path, n, "a tab: indent with spaces")
