#!/usr/bin/env python3
"""mutants_test.py - tools/mutants on a toy: what is needed dies, what is not is listed or explained.

    mutants_test.py LIBRARY      LIBRARY is libmodel_checker.a of the build
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HEADER = """#include "base/bz_atomic.h"
static bz_atomic(int) flag, spare, count;
static bz_shared(int) data;
static inline void toy_send(void)
{{
    bz_set(&data, 1);
    bz_store_release(&flag, 1); /* [A]{needed_note} */
    bz_store_release(&spare, 1); /* nobody reads it{spare_note} */
}}
static inline int toy_receive(void)
{{
    bz_fetch_add_relaxed(&count, 1); /* relaxed: a count */
    return bz_load_acquire(&flag) ? bz_get(&data) : 1; /* [A] */
}}
static inline void toy_count(void)
{{
    bz_fetch_add_relaxed(&count, 1); /* relaxed: a count */
}}
"""
TEST = """/*
 * toy_model.c - a toy.
 *
 *   covers: src/toy.h
 */
#include "toy.h"
#include "model.h"
static void sends(void) { toy_send(); toy_count(); }
static void receives(void) { m_assert(toy_receive() == 1); }
MODEL(toy, works) { m_threads(sends, receives); m_assert(bz_load_relaxed(&count) == 2); }
"""


def tree(place, **notes):
    (place / "src").mkdir()
    (place / "tests").mkdir()
    (place / "src/base").symlink_to(ROOT / "src/base")
    (place / "include").symlink_to(ROOT / "include")
    model = place / "tests/model"
    model.mkdir()
    for name in ("lib", "model.h", "model_atomic.h", "model_c11.h"):
        (model / name).symlink_to(ROOT / "tests/model" / name)
    (model / "toy_model.c").write_text(TEST)
    notes = {"needed_note": "", "spare_note": "", **notes}
    (place / "src/toy.h").write_text(HEADER.format(**notes))


def run(library, **notes):
    with tempfile.TemporaryDirectory() as name:
        tree(Path(name), **notes)
        command = [str(ROOT / "tools/mutants"), "--root", name, "--library", library]
        first = subprocess.run(command, capture_output=True, text=True)
        again = subprocess.run(command, capture_output=True, text=True)
    timeless = lambda text: re.sub(r"; \d+ s$", "", text, flags=re.M)
    if timeless(first.stdout) != timeless(again.stdout):
        sys.exit(f"a second run says something else:\n{first.stdout}\n{again.stdout}")
    return first


def expect(what, done, status, *patterns):
    missing = [p for p in patterns if not re.search(p, done.stdout, re.M)]
    if done.returncode != status or missing:
        print(f"FAIL {what}: status {done.returncode}, not {status}; not found: {missing}\n"
              f"{done.stdout}{done.stderr}")
        return False
    return True


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__, end="")
        return 2
    library = sys.argv[1]
    results = [
        expect("a survivor is listed with its line", run(library), 1,
               r"^survivor: src/toy\.h:8: bz_store_release -> bz_store_relaxed$",
               r"^mutants: 5 in 1 files, 4 killed, 0 explained, 1 survive, 0 notes are wrong"),
        expect("an explained survivor is none", run(library, spare_note="; stronger than needed: a toy"), 0,
               r"^mutants: 5 in 1 files, 4 killed, 1 explained, 0 survive, 0 notes are wrong"),
        expect("a note beside what is needed is wrong",
               run(library, needed_note="; stronger than needed: not so",
                   spare_note="; stronger than needed: a toy"), 1,
               r"^wrong note: src/toy\.h:7 says"),
    ]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
