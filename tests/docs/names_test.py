#!/usr/bin/env python3
"""What the documents for users call by name is there: in a header, or read from the environment.

Tables of the kind "you know this, here it is called that" rot when a function is renamed: nothing
breaks but the reader. (architecture.md and acceptance.md speak of what is to come, too, and are left out.)
"""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("choosing-*.md", "coming-from-*.md", "cost-*.md", "what-can-stop-whom.md", "cancellation.md",
         "debugging.md", "tracing.md", "how-a-task-runs.md")
NAME = re.compile(r"\b(?:blitz|BLITZ)_[A-Za-z0-9_]*[A-Za-z0-9]\b(?!\*)")


def known():
    """Every name in the public headers, and in the file that reads the environment."""
    sources = [*(ROOT / "include").rglob("*.h"), ROOT / "src" / "sched" / "config.c"]
    return set(NAME.findall("\n".join(p.read_text(encoding="utf-8") for p in sources)))


def strangers(text, names):
    return sorted(set(NAME.findall(text)) - names)


class Names(unittest.TestCase):
    def test_every_name_in_a_document_for_users_is_there(self):
        pages = sorted(page for pattern in PAGES for page in (ROOT / "docs").glob(pattern))
        self.assertGreater(len(pages), 8)
        names = known()
        wrong = {page.name: strangers(page.read_text(encoding="utf-8"), names) for page in pages}
        self.assertEqual({page: found for page, found in wrong.items() if found}, {})

    def test_a_name_that_is_nowhere_is_seen(self):
        text = "take `blitz_spawn`, or `blitz_spwan(fn)`, or `BLITZ_SPAWN_DEFINE`"
        self.assertEqual(strangers(text, known()), ["BLITZ_SPAWN_DEFINE", "blitz_spwan"])


if __name__ == "__main__":
    unittest.main()
