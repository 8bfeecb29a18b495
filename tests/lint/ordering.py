#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""ordering.py ROOT -- every acquire and release is one end of a named pair.

A pair is declared once, under Ordering in the head of a file:

    * Ordering
    *   filled   post stores turn with release  ->  drain loads it with acquire

and each of its ends, in that file or any other, carries the name at the end of its
statement: store_release(&slot->turn, ticket + 1); /* filled */
An access that is an end of two pairs names both: /* filled, emptied */

ordering.py ROOT --ends PREFIX... -- the ends in files whose paths begin so, for C: file,
first and last line, pair, order.
"""
import pathlib
import re
import sys

FOLDERS = ("runtime", "stores", "shards", "coordinator", "face")
VOCABULARY = "runtime/atomic.h"  # the one file that may spell C11's own names

END = re.compile(
    r"\b(?:load|store|swap|exchange|add|sub|and|or|xor|fence)(?:_[a-z]+)*?"
    r"_(acquire|release|acq_rel|seq_cst|full)\s*\("
)
RAW = re.compile(
    r"\bmemory_order_|\b__atomic_|\b__sync_"
    r"|\batomic_(?:load|store|exchange|compare|fetch|thread|signal|flag)\w*\s*\("
)
HEAD = re.compile(r"^ \* Ordering\b(.*?)(?=^ \* [A-Z]\w*\b|\Z)", re.S | re.M)
ENTRY = re.compile(r"^ \*   (\w+)  +(.*?)(?=^ \*   \w|\Z)", re.S | re.M)


def declared(text):
    """The pairs that the file's head declares: entries with an arrow.  One without an
    arrow speaks of a pair that another file declares."""
    head = next((c for c in re.findall(r"/\*.*?\*/", text, re.S) if " * Ordering" in c), "")
    block = HEAD.search(head)
    entries = ENTRY.findall(block[1]) if block else []
    return [name for name, text in entries if "->" in text]


def without_comments(line):
    return re.sub(r"/\*.*?\*/|^\s*\*.*|/\*.*", "", line)


def names_of(lines, at):
    """The names in the comment that ends the statement which begins here, and where."""
    for number, line in enumerate(lines[at : at + 6], at):
        match = re.search(r"/\* (\w+(?:, \w+)*)(?:[:;.] [^*]*)? \*/\s*\\?$", line)
        if match:
            return match[1].split(", "), number
        if re.search(r"[;{]\s*(/\*.*)?$", line):
            break
    return [], at


def ends_in(root, prefixes):
    """An end of two pairs comes once, with the first."""
    for path in sorted(p for f in FOLDERS for p in (root / f).rglob("*.[ch]")):
        where = str(path.relative_to(root))
        if where == VOCABULARY or not where.startswith(tuple(prefixes)):
            continue
        lines = path.read_text().splitlines()
        for at, line in enumerate(lines):
            for side in END.findall(without_comments(line)):
                names, last = names_of(lines, at)
                yield where, at + 1, last + 1, names[0], side


def main():
    root = pathlib.Path(sys.argv[1])
    paths = [p for f in FOLDERS for p in sorted((root / f).rglob("*.[ch]"))]
    bad = []
    pairs = {}  # name: where it is declared
    for path in paths:
        for name in declared(path.read_text()):
            where = path.relative_to(root)
            if name in pairs:
                bad.append(f"{where}: pair '{name}' is also declared in {pairs[name]}")
            pairs[name] = where

    sides = {name: [] for name in pairs}
    ends = 0
    for path in paths:
        where = path.relative_to(root)
        if str(where) == VOCABULARY:
            continue
        lines = path.read_text().splitlines()
        for at, line in enumerate(lines):
            code = without_comments(line)
            if RAW.search(code):
                bad.append(f"{where}:{at + 1}: say it in the words of {VOCABULARY}: {line.strip()}")
            for side in END.findall(code):
                ends += 1
                names, _ = names_of(lines, at)
                if not names or any(name not in pairs for name in names):
                    bad.append(f"{where}:{at + 1}: which pair is this? {line.strip()}")
                for name in names:
                    sides.setdefault(name, []).append(side)

    for name, where in pairs.items():
        have = sides[name]
        if len(have) < 2:
            bad.append(f"{where}: pair '{name}' has {len(have)} ends")
        elif all(side == "acquire" for side in have):
            bad.append(f"{where}: pair '{name}' has no release")
        elif all(side == "release" for side in have):
            bad.append(f"{where}: pair '{name}' has no acquire")
    print("\n".join(bad + [f"{len(pairs)} pairs, {ends} ends, {len(bad)} faults"]))
    return 1 if bad else 0


if sys.argv[2:3] == ["--ends"]:
    for file, first, last, pair, side in ends_in(pathlib.Path(sys.argv[1]), sys.argv[3:]):
        print(f'{{ "{file}", {first}, {last}, "{pair}", {side.upper()} }},')
    sys.exit(0)
sys.exit(main())
