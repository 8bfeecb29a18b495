#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""functions.py ROOT -- how long the functions are; none may exceed MOST lines.

Under .clang-format a function's braces, and only they, stand alone in column one.
"""
import pathlib
import statistics
import sys

FOLDERS = ("engine", "runtime", "stores", "shards", "coordinator", "face", "policy", "sim")
MOST = 70


def functions(path):
    """(line, length of the body) of each function."""
    start = None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            yield start, number - start - 1
            start = None


def main():
    root = pathlib.Path(sys.argv[1])
    found = sorted(
        (length, f"{path.relative_to(root)}:{line}")
        for folder in FOLDERS
        for path in (root / folder).rglob("*.[ch]")
        for line, length in functions(path)
    )
    if not found:
        print("no functions found")
        return 1
    lengths = [length for length, _ in found]
    print(f"{len(found)} functions; lines of the body: median {statistics.median(lengths):g},",
          f"nine in ten up to {lengths[len(lengths) * 9 // 10]}, longest {lengths[-1]}")
    long = [f"{where}: {length} lines, more than {MOST}" for length, where in found if length > MOST]
    print("\n".join(long), end="\n" if long else "")
    return 1 if long else 0


sys.exit(main())
