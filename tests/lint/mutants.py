#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""mutants.py ROOT -- the line that each mutant of tests/sim/mutants.sh replaces is there, once.

They take too long to be built each time; so at least they do not rot.
"""
import pathlib
import shlex
import sys


def mutants(text):
    text = text.replace("\\\n", " ")
    return [shlex.split(line)[1:] for line in text.split("\n") if line.startswith("mutant ")]


def main():
    root = pathlib.Path(sys.argv[1])
    found = mutants((root / "tests/sim/mutants.sh").read_text())
    bad = [m for m in found if (root / m[0]).read_text().count(m[2]) != 1]
    for path, what, old, *_ in bad:
        print(f"{path}: {what}: its line is not there once: {old}")
    print(f"{len(found)} mutants, {len(bad)} faults")
    return 1 if bad or not found else 0


sys.exit(main())
