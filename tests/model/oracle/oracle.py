#!/usr/bin/env python3
"""oracle.py - check the model checker against the axioms, on random programs.

The checker is clever: it builds only consistent executions, each once, with clocks for relations and a
reduction in place of interleavings. This is the plain form. For a random straight-line program it writes down
every choice of reads-from and modification order there is, and keeps those that satisfy
RC11 as the paper states it, relation by relation. The two must agree on the number of executions, with
the checker's reduction and without (--all-orders).

    oracle.py PROGRAM [--count N] [--seed N]     PROGRAM is the model_oracle of the build
    oracle.py PROGRAM --show 'Wx1n Ryn|Wy1n Rxn'

Differences from the paper, on purpose and on both sides: a release sequence is C++20's (no later
stores of the same thread), and po U rf has no cycle, as RC11 itself demands.
"""
import argparse
import itertools
import os
import random
import re
import subprocess
import sys

ORDERS = {"R": "nas", "W": "nrs", "U": "narqs", "F": "arqs"}


class Event:
    def __init__(self, i, thread, kind, loc, order):
        self.i, self.thread, self.kind, self.loc, self.order = i, thread, kind, loc, order
        self.reads, self.writes = kind in "RU", kind in "WU"
        self.is_fence = kind == "F"
        self.acquires, self.releases = order in "aqs", order in "rqs"
        self.is_sc = order == "s"


def parse(text):
    """The events of a program, initial writes first, and po."""
    threads = [re.findall(r"W[xyz]\d.|[RU][xyz].|F.", t) for t in text.split("|")]
    locs = sorted({op[1] for t in threads for op in t if op[0] != "F"})
    events = [Event(i, -1, "W", loc, "n") for i, loc in enumerate(locs)]
    for n, ops in enumerate(threads):
        for op in ops:
            loc = None if op[0] == "F" else op[1]
            events.append(Event(len(events), n, op[0], loc, op[-1]))
    return events, locs


class Relation:
    """A set of pairs, as a row of bits for each event."""

    def __init__(self, n, pairs=()):
        self.n, self.row = n, [0] * n
        for a, b in pairs:
            self.row[a] |= 1 << b

    def _made(self, rows):
        r = Relation(self.n)
        r.row = rows
        return r

    def __or__(self, other):
        return self._made([a | b for a, b in zip(self.row, other.row)])

    def then(self, other):
        rows = []
        for bits in self.row:
            out, k = 0, 0
            while bits >> k:
                if bits >> k & 1:
                    out |= other.row[k]
                k += 1
            rows.append(out)
        return self._made(rows)

    def maybe(self):
        return self._made([bits | 1 << i for i, bits in enumerate(self.row)])

    def plus(self):
        rows = list(self.row)
        for k in range(self.n):
            for i in range(self.n):
                if rows[i] >> k & 1:
                    rows[i] |= rows[k]
        return self._made(rows)

    def keep(self, left, right):
        return self._made([sum(1 << b for b in range(self.n) if bits >> b & 1 and right(b))
                           if left(a) else 0 for a, bits in enumerate(self.row)])

    def where(self, test):
        return self._made([sum(1 << b for b in range(self.n) if bits >> b & 1 and test(a, b))
                           for a, bits in enumerate(self.row)])

    def is_irreflexive(self):
        return not any(bits >> i & 1 for i, bits in enumerate(self.row))


def synchronizes(ev, po, rf_of, n):
    """sw: [rel] ; ([F]; po)? ; rs ; rf ; (po; [F])? ; [acq]."""
    pairs = []
    for r, w in rf_of.items():
        heads = [w]
        while ev[heads[-1]].kind == "U":
            heads.append(rf_of[heads[-1]])
        sources = [h for h in heads if ev[h].releases]
        sources += [f.i for f in ev for h in heads if f.is_fence and f.releases and po.row[f.i] >> h & 1]
        targets = [r] if ev[r].acquires else []
        targets += [f.i for f in ev if f.is_fence and f.acquires and po.row[r] >> f.i & 1]
        pairs += itertools.product(sources, targets)
    return Relation(n, pairs)


def is_consistent(ev, po, rf_of, mo_lists):
    n = len(ev)
    rf = Relation(n, [(w, r) for r, w in rf_of.items()])
    if not (po | rf).plus().is_irreflexive():
        return False
    mo = Relation(n, [(a, b) for chain in mo_lists for k, a in enumerate(chain) for b in chain[k + 1:]])
    place = {w: (c, k) for c, chain in enumerate(mo_lists) for k, w in enumerate(chain)}
    for r, w in rf_of.items():
        if ev[r].kind == "U" and place[r] != (place[w][0], place[w][1] + 1):
            return False
    rb = Relation(n, [(r, b) for r, w in rf_of.items() for b in range(n)
                      if mo.row[w] >> b & 1 and b != r])
    hb = (po | synchronizes(ev, po, rf_of, n)).plus()
    eco = (rf | mo | rb).plus()
    if not hb.is_irreflexive() or not hb.then(eco.maybe()).is_irreflexive():
        return False
    same = lambda a, b: ev[a].loc is not None and ev[a].loc == ev[b].loc
    apart = po.where(lambda a, b: not same(a, b))
    scb = po | apart.then(hb).then(apart) | hb.where(same) | mo | rb
    is_sc = lambda i: ev[i].is_sc
    is_f = lambda i: ev[i].is_sc and ev[i].is_fence
    identity = Relation(n, [(i, i) for i in range(n)])
    left = identity.keep(is_sc, is_sc) | hb.maybe().keep(is_f, lambda i: True)
    right = identity.keep(is_sc, is_sc) | hb.maybe().keep(lambda i: True, is_f)
    psc = left.then(scb).then(right) | (hb | hb.then(eco).then(hb)).keep(is_f, is_f)
    return psc.plus().is_irreflexive()


def count_executions(text):
    ev, locs = parse(text)
    po = Relation(len(ev), [(a.i, b.i) for a in ev for b in ev
                            if a.i < b.i and (a.thread == b.thread != -1 or
                                              a.thread == -1 != b.thread)])
    reads = [e.i for e in ev if e.reads]
    sources = [[w.i for w in ev if w.writes and w.loc == ev[r].loc and w.i != r] for r in reads]
    chains = []
    for loc in locs:
        first, *rest = [e.i for e in ev if e.writes and e.loc == loc]
        chains.append([[first, *p] for p in itertools.permutations(rest)])
    return sum(is_consistent(ev, po, dict(zip(reads, rf)), mo)
               for rf in itertools.product(*sources) for mo in itertools.product(*chains))


def random_program(rng):
    """Small enough to write everything down: at most a few thousand candidates."""
    while True:
        threads = []
        strict = rng.random()
        for _ in range(rng.choice([2, 2, 3, 3, 4])):
            ops = []
            for _ in range(rng.randint(1, 4)):
                kind = rng.choice("RRWWUF" if rng.random() < 0.5 else "RRWW")
                order = rng.choice(ORDERS[kind])
                order = "s" if rng.random() < strict * 0.6 else order
                loc = "" if kind == "F" else rng.choice("xy" if rng.random() < 0.9 else "xyz")
                value = str(rng.randint(1, 9)) if kind == "W" else ""
                ops.append(f"{kind}{loc}{value}{order}")
            threads.append(" ".join(ops))
        text = "|".join(threads)
        ev, locs = parse(text)
        size = 1
        for loc in locs:
            writes = sum(e.writes and e.loc == loc for e in ev) - 1
            reads = sum(e.reads and e.loc == loc for e in ev)
            for k in range(2, writes + 1):
                size *= k
            size *= (writes + 1) ** reads
        if 2 < size <= 3000:
            return text


def count_by_checker(program, text, *options):
    done = subprocess.run([program, *options], env={**os.environ, "BLITZ_MODEL_PROGRAM": text},
                          capture_output=True, text=True)
    found = re.search(r"^ok +oracle\.program +(\d+) +\d+ +complete", done.stdout, re.M)
    if found is None:
        sys.exit(f"oracle: the checker did not finish on '{text}':\n{done.stdout}{done.stderr}")
    return int(found[1])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("program")
    p.add_argument("--count", type=int, default=250)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--show", metavar="TEXT", help="one program, and what each side says")
    args = p.parse_args()
    rng = random.Random(args.seed)
    failed = executions = 0
    programs = [args.show] if args.show else [random_program(rng) for _ in range(args.count)]
    for text in programs:
        want = count_executions(text)
        got = count_by_checker(args.program, text)
        every = count_by_checker(args.program, text, "--all-orders")
        executions += want
        if args.show or not want == got == every:
            print(f"'{text}': the axioms allow {want}, the checker finds {got}, "
                  f"without reduction {every}")
        failed += not want == got == every
    print(f"{len(programs)} programs with {executions} executions, seed {args.seed}")
    print(f"{len(programs) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
