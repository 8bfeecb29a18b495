#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""links.py ROOT -- a link in a page of the project leads to a file or to a heading that is there."""
import pathlib
import re
import sys

PAGES = ("*.md", "bench/*.md", "docs/*.md", "engine/*.md", "examples/*.md", "spec/*.md", "spec/decisions/*.md")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page):
    """The headings of a page as GitHub spells them in links."""
    for heading in re.findall(r"^#+ (.*)$", page.read_text(), re.M):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def main():
    root = pathlib.Path(sys.argv[1])
    pages = sorted(p for glob in PAGES for p in root.glob(glob))
    links = 0
    faults = []
    for page in pages:
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
