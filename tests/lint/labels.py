#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""labels.py ROOT -- each label of an invariant means one thing, and is written down.

A module's invariants are numbered under its own word: LEASE-2, REDIS-6.  The head of one
file declares a label, by two spaces after it; all else cites it.
"""
import collections
import pathlib
import re
import sys

FOLDERS = ("bench", "docs", "engine", "examples", "face", "include", "runtime", "shards", "sim",
           "spec", "stores", "tests", "tools")
ENDINGS = (".c", ".h", ".lua", ".md", ".py", ".sh", ".sql")
DECLARATION = re.compile(r"^(?: \*|--)(?: Invariants)?\s+([A-Z]{2,}-\d+)  \S", re.M)
LABEL = re.compile(r"(?<![\w-])([A-Z]{2,})-(\d{1,2})(?![\w-])")
# What is written like a label and is none.
OTHERS = {"CRC", "GMT", "HIREDIS", "SHA", "UTC", "UTF", "IEEE", "ISO", "RFC", "POSIX"}


def texts(root):
    yield from ((p, p.read_text()) for p in sorted(root.glob("*.md")))
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in ENDINGS and path.is_file() and path.name != "labels.py":
                yield path, path.read_text(errors="replace")


def main():
    root = pathlib.Path(sys.argv[1])
    declared = collections.defaultdict(list)
    cited = []
    for path, text in texts(root):
        name = path.relative_to(root)
        for match in DECLARATION.finditer(text):
            declared[match[1]].append(name)
        for match in LABEL.finditer(text):
            if match[1] not in OTHERS:
                cited.append((f"{match[1]}-{match[2]}", name, text.count("\n", 0, match.start()) + 1))
    faults = [f"{label} is declared in {' and in '.join(map(str, names))}"
              for label, names in sorted(declared.items()) if len(names) > 1]
    faults += [f"{name}:{line}: no file's head declares {label}"
               for label, name, line in cited if label not in declared]
    for fault in faults:
        print(fault)
    print(f"{len(declared)} labels, cited {len(cited) - len(declared)} times, {len(faults)} faults")
    return 1 if faults or not declared else 0


sys.exit(main())
