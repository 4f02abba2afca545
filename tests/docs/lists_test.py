#!/usr/bin/env python3
"""Lists are complete: examples, documents, environment variables.

A reader who looks for an example or an environment variable looks only into the list.
"""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def text_of(folder, pattern):
    return "\n".join(p.read_text(encoding="utf-8") for p in sorted((ROOT / folder).rglob(pattern)))


class Environment(unittest.TestCase):
    def setUp(self):
        self.read = set(re.findall(r'"(BLITZ_[A-Z_]+)"', text_of("src", "*.c")))

    def test_the_variables_are_found(self):
        self.assertIn("BLITZ_PROCS", self.read)

    def test_every_variable_is_in_the_manual_page(self):
        page = (ROOT / "docs/man/blitz.7").read_text(encoding="utf-8")
        self.assertEqual(self.read - set(re.findall(r"^\.B (BLITZ_[A-Z_]+)$", page, re.M)), set())

    def test_every_variable_is_in_a_header(self):
        self.assertEqual(self.read - set(re.findall(r"BLITZ_[A-Z_]+", text_of("include", "*.h"))),
                         set())

    def test_the_manual_page_invents_none(self):
        page = (ROOT / "docs/man/blitz.7").read_text(encoding="utf-8")
        self.assertEqual(set(re.findall(r"^\.B (BLITZ_[A-Z_]+)$", page, re.M)) - self.read, set())


class Tables(unittest.TestCase):
    def listed(self, page):
        text = (ROOT / page).read_text(encoding="utf-8")
        return set(re.findall(r"^\| \[[^]]*\]\(([^)]+)\)", text, re.M))

    def test_every_example_is_in_the_table(self):
        there = {p.name for p in (ROOT / "examples").glob("*.[ch]")}
        self.assertEqual(there, self.listed("examples/README.md"))

    def test_every_document_is_in_the_table(self):
        there = {p.name for p in (ROOT / "docs").glob("*.md")} - {"README.md"}
        self.assertEqual(there, self.listed("docs/README.md"))


if __name__ == "__main__":
    unittest.main()
