"""names.py - a comment or a document names only what exists.

  comment-file   a source file named in prose ("park.c has the reasons") is in the tree; with a folder, in that folder
  one-name       no two files of src/ have one name, and no two structs (src/arch, one file a CPU, apart)
  comment-name   a function, type or constant of ours (bz_..., BZ_..., blitz_..., BLITZ_...) named in prose is in the code

Names of other projects and systems are in OTHERS. CHANGELOG.md tells of names that are gone and is not read.
"""
import os
import re

from english import blocks
from lintlib import Finding, rule

FILE = re.compile(r"(?<![\w./*<{~-])((?:[\w-]+/)*[A-Za-z]\w*\.(?:c|h|S))\b(?![\w(])")
NAME = re.compile(r"(?<![\w./$-])(bz_[a-z0-9_]*[a-z0-9]|blitz_[a-z0-9_]*[a-z0-9]|BZ_[A-Z0-9_]*[A-Z0-9]|BLITZ_[A-Z0-9_]*[A-Z0-9])\b"
                  r"(?![*_{/]|\.\.\.|\w)")
SKIP = re.compile(r"(CHANGELOG\.md|tests/(lint|coverage|mutants)/.*|tools/mutate|tools/lint\.d/names\.py|docs/glossary\.md|docs/style\.md|.*/README\.md)$")
# Files of the C library, of other programs, and placeholders in instructions.
OTHERS = set("assert.h atomic.h errno.h limits.h pthread.h setjmp.h signal.h stdalign.h stdarg.h stdatomic.h stdbool.h "
             "stddef.h stdint.h stdio.h stdlib.h string.h threads.h time.h unistd.h sdt.h sys/sdt.h mman.h io_uring.h futex.h "
             "fenv.h linux/membarrier.h main.c hello.c hot.c server.c program.c file.c x.c x.h a.c b.c".split())


def named_files(tree):
    names = {}
    for path in tree.all:
        names.setdefault(os.path.basename(path), set()).add(path)
    return names


def sources(tree):
    return [tree.file(p) for p in tree.all if tree.file(p).is_c]


def prose(tree):
    for f in tree.files:
        if SKIP.search(f.path) or not f.text:
            continue
        for line, texts in blocks(f):
            yield from ((f, line + i, text) for i, text in enumerate(texts))


@rule("comment-file", "a source file that a comment or a document names is in the tree")
def comment_file(tree):
    names = named_files(tree)
    for f, line, text in prose(tree):
        for name in FILE.findall(text):
            base = os.path.basename(name)
            if name in OTHERS or base in OTHERS or re.search(r"NAME|NOUN", base):
                continue
            found = names.get(base, ())
            if not any(p == name or p.endswith("/" + name) for p in found):
                where = f": there is {' and '.join(sorted(found))}" if found else ""
                yield Finding(f.path, line, f"no {name} in the tree{where}")


@rule("comment-name", "a function, type or constant of ours that a comment or a document names is in the code")
def comment_name(tree):
    known = {"BLITZ_0"}  # the version of the exported symbols
    for f in sources(tree):
        known.update(t.text for t in f.code if t.kind == "ident")
    for path in tree.all:  # options of the build, variables of the environment
        if path.endswith((".cmake", "CMakeLists.txt", "CMakePresets.json", "Makefile", ".toml", ".py")) or path.startswith(("tools/", ".ci/")):
            known.update(re.findall(r"\b\w+\b", tree.file(path).text))
    for f in sources(tree):
        for t in f.code:
            if t.kind == "string":
                known.update(re.findall(r"\b(?:BLITZ|BZ)_\w+", t.text))
    for f, line, text in prose(tree):
        if not f.is_c and not f.path.endswith(".md") or f.path == "docs/acceptance.md":
            continue  # the table of what was asked for has names that are planned
        for name in NAME.findall(text):
            if name not in known:
                yield Finding(f.path, line, f"no {name} in the code")


STRUCT = re.compile(r"^struct (bz_\w+) \{", re.M)


def twins(places):
    """(path, line, name, where it was first) of each second thing of one name. places: (name, path, line)"""
    first = {}
    for name, path, line in places:
        if first.setdefault(name, path) != path:
            yield path, line, name, first[name]


@rule("one-name", "no two files of src/ have one name, and no two structs")
def one_name(tree):
    files = [f for f in sources(tree) if f.path.startswith("src/") and not f.path.startswith("src/arch/")]
    named = [(os.path.basename(f.path), f.path, 1) for f in files]
    structs = [("struct " + m[1], f.path, f.text.count("\n", 0, m.start()) + 1)
               for f in files for m in STRUCT.finditer(f.text)]
    for path, line, name, other in twins(named + structs):
        yield Finding(path, line, f"{name} is in {other}, too: two names for two things")
