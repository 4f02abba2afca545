#!/usr/bin/env python3
"""Names in the user documents exist: in a header, or as an environment variable.

Tables of the kind "you know this, here it is called that" rot when a function is renamed: nothing
breaks but the reader. (architecture.md and acceptance.md speak of what is to come, too, and are left out.)
"""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("choosing-*.md", "coming-from-*.md", "cost-*.md", "what-can-stop-whom.md", "cancellation.md",
         "debugging.md", "tracing.md", "where-to-call.md", "platforms.md", "how-a-task-runs.md", "networking.md")
NETWORK = ("addr", "tcp", "udp", "unix", "fd", "resolve", "stream")
DECLARED = re.compile(r"^(?:BLITZ_API|static inline)\b[^;{]*?\b(blitz_\w+)\(", re.MULTILINE)
WAITING = re.compile(r"\bBLITZ_SUSPENDS\b[^;{]*?\b(blitz_\w+)\(")
NAME = re.compile(r"\b(?:blitz|BLITZ)_[A-Za-z0-9_]*[A-Za-z0-9]\b(?!\*)")


def known():
    """Every name in the public headers, and in the file that reads the environment."""
    sources = [*(ROOT / "include").rglob("*.h"), ROOT / "src" / "runtime" / "config.c"]
    return set(NAME.findall("\n".join(p.read_text(encoding="utf-8") for p in sources)))


def strangers(text, names):
    return sorted(set(NAME.findall(text)) - names)


def unnamed(pattern, headers, page):
    """Functions of these headers, but for internal ones (a name that ends in _), that the page does not name."""
    text = "\n".join(p.read_text(encoding="utf-8") for p in headers)
    named = set(NAME.findall((ROOT / "docs" / page).read_text(encoding="utf-8")))
    return sorted({f for f in pattern.findall(text) if not f.endswith("_")} - named)


class Names(unittest.TestCase):
    def test_every_name_in_a_document_for_users_is_there(self):
        pages = sorted(page for pattern in PAGES for page in (ROOT / "docs").glob(pattern))
        self.assertGreater(len(pages), 8)
        names = known()
        wrong = {page.name: strangers(page.read_text(encoding="utf-8"), names) for page in pages}
        self.assertEqual({page: found for page, found in wrong.items() if found}, {})

    def test_every_call_that_waits_is_in_the_table_of_cancellation(self):
        self.assertEqual(unnamed(WAITING, (ROOT / "include" / "blitz").glob("*.h"), "cancellation.md"), [])

    def test_every_call_of_the_network_is_in_its_guide(self):
        """Futures are named after their call: the guide says so once."""
        headers = [ROOT / "include" / "blitz" / f"{name}.h" for name in NETWORK]
        missing = unnamed(DECLARED, headers, "networking.md")
        self.assertEqual([name for name in missing if not name.endswith("_future_init")], [])

    def test_a_call_that_is_not_named_is_seen(self):
        headers = [ROOT / "include" / "blitz" / "mutex.h"]
        self.assertIn("blitz_mutex_lock", unnamed(WAITING, headers, "networking.md"))
        self.assertIn("blitz_mutex_init", unnamed(DECLARED, headers, "networking.md"))

    def test_a_name_that_is_nowhere_is_seen(self):
        text = "take `blitz_spawn`, or `blitz_spwan(fn)`, or `BLITZ_SPAWN_DEFINE`"
        self.assertEqual(strangers(text, known()), ["BLITZ_SPAWN_DEFINE", "blitz_spwan"])


if __name__ == "__main__":
    unittest.main()
