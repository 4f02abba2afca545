#!/usr/bin/env python3
"""docs/dependencies.md and the table of tools/setup name the same packages in the same groups.

A package that is installed for people is owed a reason, and a documented one that nothing installs
is a lie. Also: every Markdown link inside the tree leads somewhere.
"""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def installed():
    """{package: groups} of the table in tools/setup."""
    text = (ROOT / "tools" / "setup").read_text(encoding="utf-8")
    table = re.search(r"^table='\n(.*?)^'", text, re.S | re.M)
    packages = {}
    for line in table.group(1).splitlines() if table else []:
        fields = line.split()
        if len(fields) == 3:
            packages.setdefault(fields[2], set()).add(fields[0])
    return packages


def documented():
    """{package: groups} of the table in docs/dependencies.md."""
    packages = {}
    for line in (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 5 and re.fullmatch(r"[a-z0-9][a-z0-9.+-]+", cells[0]):
            if cells[0] == "package":
                continue
            packages[cells[0]] = {group.strip() for group in cells[1].split(",")}
            assert all(cells), f"an empty cell in the row of {cells[0]}"
    return packages


class Dependencies(unittest.TestCase):
    maxDiff = None

    def test_the_document_says_what_setup_installs(self):
        self.assertTrue(installed(), "the table of tools/setup was not found")
        self.assertEqual(documented(), installed(),
                         "left: docs/dependencies.md, right: tools/setup; bring them together")


class Links(unittest.TestCase):
    def test_every_link_inside_the_tree_leads_somewhere(self):
        pages = sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md"))
        self.assertTrue(pages)
        dead = []
        for page in pages:
            for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
                if "://" not in target and not (page.parent / target).exists():
                    dead.append(f"{page.relative_to(ROOT)}: {target}")
        self.assertEqual(dead, [])


if __name__ == "__main__":
    unittest.main()
