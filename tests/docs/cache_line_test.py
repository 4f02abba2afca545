#!/usr/bin/env python3
"""BZ_LINE has the documented value on every architecture, also on those we cannot run on.

src/base/compiler.h is preprocessed as that architecture would see it: with its macro and without
ours. The two headers it includes are replaced by empty ones, because the real ones belong to the
machine we are on.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
OURS = ("__x86_64__", "__aarch64__", "__riscv", "__powerpc64__", "__s390x__", "__arm__")
LINE = {"__x86_64__": 128, "__aarch64__": 128, "__powerpc64__": 128, "__s390x__": 256,
        "__arm__": 64, "__mips__": 64, "__sparc__": 64, "__riscv": 64, "__wasm__": 64}


def line_of(macro):
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or "clang"
    with tempfile.TemporaryDirectory() as folder:
        for header in ("stddef.h", "stdint.h"):
            (pathlib.Path(folder) / header).touch()
        done = subprocess.run(
            [*compiler.split(), "-E", "-P", "-nostdinc", "-I", folder, "-I", str(ROOT / "src"),
             *(f"-U{other}" for other in OURS if other != macro), f"-D{macro}=1", "-x", "c", "-"],
            input='#include "base/compiler.h"\nBZ_LINE\n', capture_output=True, text=True,
            check=True)
    return int(done.stdout.split()[-1])


class CacheLine(unittest.TestCase):
    def test_every_architecture_has_its_line(self):
        self.assertEqual({macro: line_of(macro) for macro in LINE}, LINE)


if __name__ == "__main__":
    unittest.main()
