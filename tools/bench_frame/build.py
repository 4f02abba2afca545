"""Installs and builds what a benchmark needs: ours with CMake, the peers by their own commands.

Ours must build, or there is nothing to measure. A peer that cannot be installed or built is left
out, and the reason goes into the table, the JSON and the report: a peer missing without a word
would read as a peer beaten.

Placeholders in commands:
  {root} the tree        {bench} its bench/ folder    {ours} build/bench, our CMake build
  {out}  the program to make, a path of its own per contender
  {cc} {cxx} {cflags}    the compilers, and the flags ours is built with
"""

import os
import subprocess

from .spec import OURS

# As cmake/BlitzFlags.cmake has them: for code as small as a queue even the frame pointer shows.
CFLAGS = ("-D_GNU_SOURCE=1 -O3 -DNDEBUG -fPIE -fvisibility=hidden -fno-common "
          "-fno-omit-frame-pointer -fasynchronous-unwind-tables -Wall -Wextra")
BUILD_LIMIT_S = 900


class BuildError(Exception):
    """Ours does not build."""


class Workshop:
    """Where things are built, and how its commands are spelled out."""

    def __init__(self, root, say=lambda text: None):
        self.root = root
        self.ours = root / "build" / "bench"
        self.say = say

    def out(self, spec, contender):
        return self.ours / "peers" / spec.name / contender.name

    def spell(self, spec, contender, argv):
        """argv with its placeholders filled in."""
        words = []
        for word in argv:
            if word == "{cflags}":
                words += CFLAGS.split()
            else:
                words.append(self._fill(spec, contender, word))
        return words

    def _fill(self, spec, contender, word):
        for key, value in (
            ("{root}", self.root),
            ("{bench}", self.root / "bench"),
            ("{ours}", self.ours),
            ("{out}", self.out(spec, contender)),
            ("{cc}", os.environ.get("CC", "cc")),
            ("{cxx}", os.environ.get("CXX", "c++")),
        ):
            word = word.replace(key, str(value))
        return word


def reason_of(output):
    """The line of a failed command's output that tells most: the first error, else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for sign in ("error:", "undefined reference", "not found", "error"):
        for line in lines:
            if sign in line.lower() and not line.startswith("collect2:"):
                return line
    return lines[-1] if lines else "it said nothing"


def _run(argv, cwd):
    """(succeeded, output)"""
    try:
        done = subprocess.run(
            argv, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=BUILD_LIMIT_S, text=True, errors="replace", check=False)
    except subprocess.TimeoutExpired:
        return False, f"{argv[0]}: no end after {BUILD_LIMIT_S} s"
    except OSError as error:
        return False, f"{argv[0]}: {error.strerror}"
    return done.returncode == 0, done.stdout


def _setup(shop, contender):
    """Let tools/setup install; its failure is a hint for later, since the peer may build anyway."""
    tool = shop.root / "tools" / "setup"
    if not contender.setup or not tool.exists():
        return ""
    ok, output = _run([str(tool)] + contender.setup, shop.root)
    return "" if ok else output.strip().splitlines()[-1] if output.strip() else "tools/setup fails"


def build_ours(shop, spec):
    ours = spec.contenders[OURS]
    if ours.targets:
        shop.say("building ours")
        for argv in (["cmake", "--preset", "bench"],
                     ["cmake", "--build", "--preset", "bench", "--target"] + ours.targets):
            ok, output = _run(argv, shop.root)
            if not ok:
                raise BuildError(output)
    for argv in ours.build:
        ok, output = _run(shop.spell(spec, ours, argv), shop.root)
        if not ok:
            raise BuildError(output)


def build_peer(shop, spec, peer):
    """Why it cannot take part, or "" if it can."""
    shop.say(f"building {peer.name}")
    hint = _setup(shop, peer)
    shop.out(spec, peer).parent.mkdir(parents=True, exist_ok=True)
    for argv in peer.build:
        ok, output = _run(shop.spell(spec, peer, argv), shop.root)
        if not ok:
            return "does not build: " + reason_of(output) + (f" ({hint})" if hint else "")
    return ""


def build_all(shop, spec, wanted):
    """Build ours and the wanted peers; returns {peer: why it is skipped}."""
    build_ours(shop, spec)
    skipped = {}
    for peer in spec.peers():
        if peer.name in wanted:
            why = build_peer(shop, spec, peer)
            if why:
                skipped[peer.name] = why
    return skipped
