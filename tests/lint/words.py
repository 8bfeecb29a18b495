#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""words.py ROOT -- docs/words.md explains what the structs of shards/ and stores/ are called.

A struct's name is explained if one of its words, lend_request's lend or request, is in the
first column of a table, in any number (trip, trips).  A word has one row.
"""
import pathlib
import re
import sys

HEADERS = ("coordinator/*.h", "shards/*.h", "stores/*.h")


def explained(text):
    for line in text.splitlines():
        row = re.match(r"\| ([^|]+) \|", line)
        if row and row[1] not in ("word", "---"):
            yield from (word.strip() for word in row[1].split(","))


def forms(part):
    return {part, part.removesuffix("s"), part.removesuffix("es")}


def main():
    root = pathlib.Path(sys.argv[1])
    words = list(explained((root / "docs/words.md").read_text()))
    known = {form for word in words for part in word.split() for form in forms(part)}
    faults = [f"docs/words.md explains {word} twice" for word in sorted(set(words))
              if words.count(word) > 1]
    structs = 0
    for path in sorted(p for glob in HEADERS for p in root.glob(glob)):
        for name in re.findall(r"^struct (\w+) \{", path.read_text(), re.M):
            structs += 1
            if not any(forms(part) & known for part in name.split("_")):
                faults.append(f"{path.relative_to(root)}: docs/words.md explains no word of {name}")
    for fault in faults:
        print(fault)
    print(f"{len(words)} words, {structs} structs, {len(faults)} faults")
    return 1 if faults or not structs or not words else 0


sys.exit(main())
