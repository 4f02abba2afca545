#!/usr/bin/env python3
"""Tests of the load generator of bench-net: a server that does not return the bytes it got must not get a figure.

The servers are a few lines of Python that echo, and lie in one way each. They do so in their 20th turn: eight connections have
one message first, and then 48 come in at most two a turn, however little time there is.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SERVER = """
import selectors, socket, sys
lie = sys.argv[1]
chosen, held, turn = selectors.DefaultSelector(), [], 0
listener = socket.create_server(("127.0.0.1", 0), backlog=64)
print("port", listener.getsockname()[1], flush=True)
chosen.register(listener, selectors.EVENT_READ)
while True:
    for key, _ in chosen.select():
        if key.fileobj is listener:
            chosen.register(listener.accept()[0], selectors.EVENT_READ)
            continue
        try:
            data = key.fileobj.recv(4096)
        except ConnectionError:
            data = b""
        if not data:
            chosen.unregister(key.fileobj)
            continue
        turn += 1
        if turn == 20:
            if lie == "flip":
                data = data[:-1] + bytes([data[-1] ^ 1])
            elif lie == "lose":
                data = data[64:]
            elif lie == "double":
                data += data
            elif lie == "end":
                key.fileobj.shutdown(socket.SHUT_WR)
                continue
        if lie == "swap" and 20 <= turn < 22:
            held.append((key.fileobj, data))
            if len(held) == 2:
                (a, x), (b, y) = held
                a.sendall(y)
                b.sendall(x)
            continue
        if lie == "halves":
            key.fileobj.sendall(data[:7])
            data = data[7:]
        key.fileobj.sendall(data)
"""


@unittest.skipUnless(sys.platform == "linux", "it counts by Linux's means")
class Load(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Path(tempfile.mkdtemp(prefix="bench-load-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        cls.load = cls.scratch / "net_load"
        (cls.scratch / "server.py").write_text(SERVER, encoding="utf-8")
        subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-D_GNU_SOURCE=1", "-O1", "-pthread",
                        "-I", ROOT / "bench", "-o", cls.load, ROOT / "bench" / "net" / "load.c"],
                       check=True)

    def run_against(self, lie, case="echo-8x2x64"):
        return subprocess.run([self.load, sys.executable, "-u", self.scratch / "server.py", lie, case,
                               "--seconds=0.05"], capture_output=True, text=True, timeout=60, check=False)

    def refused(self, lie, why):
        done = self.run_against(lie)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, why)

    def test_an_honest_server_gets_its_figures(self):
        done = self.run_against("none")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        figures = dict(line.split() for line in done.stdout.splitlines() if not line.startswith("#"))
        self.assertLessEqual({"echo-8x2x64" + end for end in ("", ".rate", ".p50", ".p99", ".p999")},
                             set(figures))
        self.assertLessEqual(float(figures["echo-8x2x64.p50"]), float(figures["echo-8x2x64.p999"]))

    def test_answers_may_come_in_pieces(self):
        self.assertEqual(self.run_against("halves").returncode, 0)

    def test_one_wrong_bit(self):
        self.refused("flip", "connection .*wrong")

    def test_a_message_that_is_lost(self):
        self.refused("lose", "connection .*(wrong|no answer)|nothing came back")

    def test_a_message_that_comes_twice(self):
        self.refused("double", "connection .*(never sent|wrong)")

    def test_two_connections_that_are_mixed_up(self):
        self.refused("swap", "connection .*wrong")

    def test_a_connection_that_ends(self):
        self.refused("end", "connection .*ended")

    def test_a_case_that_nobody_knows(self):
        done = self.run_against("none", "echo-many")
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
