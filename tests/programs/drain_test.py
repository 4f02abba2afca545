#!/usr/bin/env python3
"""drain_test.py PROGRAM - a server is ended under load, and no client sees a reset.

Several loops of curl send requests to PROGRAM (examples/drain.c), one connection each. In the middle the server gets a
SIGTERM. Every curl must end in one of two ways: with a complete answer, or with "could not connect". A reset, an empty
reply or a broken transfer fails the test. Needs curl; without it the test is skipped (77).
"""
import collections
import shutil
import signal
import subprocess
import sys
import threading

LOOPS = 6
BEFORE = 40  # answers before the signal
COULD_NOT_CONNECT = 7


def client(url, results, is_over, enough):
    while not is_over.is_set():
        got = subprocess.run(["curl", "--silent", "--max-time", "30", "--noproxy", "*", url], capture_output=True,
                             check=False)
        code = got.returncode
        if code == 0 and got.stdout != b"hello\n":
            code = "wrong answer"
        results[code] += 1
        if results[0] >= BEFORE:
            enough.set()
        if code != 0:
            return


def main():
    if len(sys.argv) != 2 or sys.argv[1] == "--help":
        print(__doc__)
        return 2
    if shutil.which("curl") is None:
        print("no curl")
        return 77
    with subprocess.Popen([sys.argv[1], "0"], stdout=subprocess.PIPE, text=True) as server:
        url = "http://" + server.stdout.readline().strip() + "/"
        results, is_over, enough = collections.Counter(), threading.Event(), threading.Event()
        loops = [threading.Thread(target=client, args=(url, results, is_over, enough)) for _ in range(LOOPS)]
        for loop in loops:
            loop.start()
        enough.wait(60)
        server.send_signal(signal.SIGTERM)
        code = server.wait(60)
        is_over.set()
        for loop in loops:
            loop.join()
        said = server.stdout.read().strip()
    answers = results.pop(0, 0)
    refused = results.pop(COULD_NOT_CONNECT, 0)
    print(f"{answers} answers, {refused} refused, {sum(results.values())} broken {dict(results)}; server: {said}, "
          f"exit {code}")
    if results or code != 0 or answers < BEFORE or said != f"{answers} answers":
        print("a client saw something else than an answer or a refused connection")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
