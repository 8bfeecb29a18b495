#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""heads.py ROOT -- every file where threads meet says at its top who may touch what.

The head is the first comment after the licence; it has a paragraph that is called Threads.
"""
import pathlib
import re
import sys

FOLDERS = ("runtime", "shards", "coordinator")


def head(text):
    comments = re.findall(r"/\*.*?\*/", text, re.S)
    return next((c for c in comments if "SPDX" not in c), "")


def main():
    root = pathlib.Path(sys.argv[1])
    paths = sorted(p for f in FOLDERS for p in (root / f).rglob("*.[ch]"))
    bad = [p for p in paths if not re.search(r"^ \* Threads {3,}\S", head(p.read_text()), re.M)]
    for path in bad:
        print(f"{path.relative_to(root)}: its head does not say which threads")
    print(f"{len(paths)} files, {len(bad)} faults")
    return 1 if bad or not paths else 0


sys.exit(main())
