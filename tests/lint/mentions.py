#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""mentions.py errors|invariants ROOT -- each has a test that names it.

errors       the names in enum gale_err
invariants   the labels under Invariants in the heads of engine/
"""
import pathlib
import re
import sys

SUITES = ("unit", "model", "torture", "fuzz", "support")


def tests(root):
    return "\n".join(
        path.read_text()
        for suite in SUITES
        for path in sorted((root / "tests" / suite).rglob("*.[ch]"))
    )


def errors(root):
    text = (root / "include/gale/errors.h").read_text()
    return ["GALE_ERR_" + name for name in re.findall(r"\bX\((\w+), \d+,", text)]


def invariants(root):
    found = []
    for path in sorted((root / "engine").glob("*.[ch]")):
        head = next((c for c in re.findall(r"/\*.*?\*/", path.read_text(), re.S)
                     if " * Invariants" in c), "")
        block = re.search(r"^ \* Invariants\b(.*?)(?=^ \* [A-Z]\w*\b|\Z)", head, re.S | re.M)
        if block:
            found += re.findall(r"^(?: \*)?\s+([A-Z]+-\d+)\s\s", block[1], re.M)
    return found


def main():
    what, root = sys.argv[1], pathlib.Path(sys.argv[2])
    wanted = {"errors": errors, "invariants": invariants}[what](root)
    said = set(re.findall(r"\b[A-Z]\w*(?:-\d+)?\b", tests(root)))
    missing = [name for name in wanted if name not in said]
    for name in missing:
        print(f"no test mentions {name}")
    print(f"{len(wanted)} {what}, {len(missing)} without a test")
    return 1 if missing or not wanted else 0


sys.exit(main())
