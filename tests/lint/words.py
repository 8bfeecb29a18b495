#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""words.py ROOT -- docs/words.md explains what the structs of all headers are called.

A struct's name is explained if one of its words, lend_request's lend or request, is in the
first column of a table, in any number (trip, trips) or form (leasing, turned); or if the page
lists it among the words that it uses as others do.  A word has one row, or is in that list.
"""
import pathlib
import re
import sys

ROOMS = ("include/gale", "coordinator", "engine", "face", "policy", "runtime", "shards", "sim", "stores")
STRUCT = re.compile(r"^struct (?:gale_)?(\w+) \{", re.M)
USUAL = re.compile(r"^These words mean what they mean elsewhere: (.*?)\.$", re.M | re.S)


def explained(text):
    for line in text.splitlines():
        row = re.match(r"\| ([^|]+) \|", line)
        if row and row[1] not in ("word", "---"):
            yield from (word.strip() for word in row[1].split(","))


def usual(text):
    found = USUAL.search(text)
    return re.split(r",\s+", found[1]) if found else []


def forms(part):
    return {part, *(part.removesuffix(end) for end in ("s", "es", "ed")), re.sub("ing$", "e", part)}


def main():
    root = pathlib.Path(sys.argv[1])
    page = (root / "docs/words.md").read_text()
    words = [*explained(page), *usual(page)]
    known = {form for word in words for part in word.split() for form in forms(part)} - {"a", "of", "the", "to"}
    faults = [f"docs/words.md explains {word} twice" for word in sorted(set(words)) if words.count(word) > 1]
    for room in ROOMS:
        names = [(path, name) for path in sorted((root / room).rglob("*.h"))
                 for name in STRUCT.findall(path.read_text())]
        faults += [f"{path.relative_to(root)}: docs/words.md explains no word of {name}" for path, name in names
                   if not any(forms(part) & known for part in name.split("_"))]
        if not names:
            faults.append(f"{room}/ has no structs")
    for fault in faults:
        print(fault)
    print(f"{len(words)} words, {len(faults)} faults")
    return 1 if faults else 0


sys.exit(main())
