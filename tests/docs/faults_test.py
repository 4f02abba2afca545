"""The table of errors in docs/files.md is what test_fs_fault observes.

    faults_test.py PROGRAM            compare
    faults_test.py PROGRAM --write    write the table into the page
"""
import os
import pathlib
import subprocess
import sys
import tempfile

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "files.md"
BEGIN, END = "<!-- faults: tests/docs/faults_test.py --write -->\n", "<!-- end of faults -->"


def observed(program):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "table"
        env = dict(os.environ, BLITZ_FAULT_TABLE=str(path))
        subprocess.run([program, "fs_fault.each_call_survives_each_fault"], env=env, check=True, stdout=subprocess.DEVNULL)
        return path.read_text()


def main():
    text = PAGE.read_text()
    head, rest = text.split(BEGIN)
    table, tail = rest.split(END)
    new = observed(sys.argv[1])
    if sys.argv[2:] == ["--write"]:
        PAGE.write_text(head + BEGIN + new + END + tail)
    elif table != new:
        sys.exit(f"docs/files.md has another table: tests/docs/faults_test.py {sys.argv[1]} --write")


main()
