#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""links.py ROOT -- the pages of the project can be read: their links lead to files and headings that are there, and their
prose has lines of at most 140 columns."""
import pathlib
import re
import sys

PAGES = ("*.md", "bench/*.md", "docs/*.md", "engine/*.md", "examples/*.md", "spec/*.md", "spec/decisions/*.md")
LINK = re.compile(r"\]\(([^)\s]+)\)")
COLUMNS = 140


def anchors(page):
    """The headings of a page as GitHub spells them in links."""
    for heading in re.findall(r"^#+ (.*)$", page.read_text(), re.M):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def wide_lines(page):
    """Their numbers; a row of a table is one line, and what is printed stays as it is."""
    printed = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            printed = not printed
        elif len(line) > COLUMNS and not printed and not line.lstrip().startswith("|"):
            yield number


def main():
    root = pathlib.Path(sys.argv[1])
    pages = sorted(p for glob in PAGES for p in root.glob(glob))
    links = 0
    faults = []
    for page in pages:
        faults += [f"{page.relative_to(root)}:{number}: over {COLUMNS} columns" for number in wide_lines(page)]
        for number, line in enumerate(page.read_text().splitlines(), 1):
            for link in LINK.findall(line):
                if re.match(r"[a-z]+:", link):
                    continue
                links += 1
                path, _, anchor = link.partition("#")
                target = page.parent / path if path else page
                if not target.exists():
                    faults.append(f"{page.relative_to(root)}:{number}: there is no {path}")
                elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                    faults.append(f"{page.relative_to(root)}:{number}: no heading is {link}")
    for fault in faults:
        print(fault)
    print(f"{len(pages)} pages, {links} links, {len(faults)} faults")
    return 1 if faults or not links else 0


sys.exit(main())
