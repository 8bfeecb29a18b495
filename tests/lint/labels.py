#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""labels.py ROOT -- each label means one thing, and its text is written down.

LEASE-2     an invariant: the head of one file declares it, by two spaces after the label
L5, W-4     a law, or a fault that one comes from: a row of spec/laws.md declares it
All else cites.  What spec/laws.md and docs/failures.md say of files and tests must be true: each
file that a row names is there, and each test that it names after a file is in that file.  Where the
last column is "shown by", each row names a test.
"""
import collections
import pathlib
import re
import sys

FOLDERS = ("bench", "coordinator", "docs", "engine", "examples", "face", "include", "policy", "runtime", "shards", "sim",
           "spec", "stores", "tests", "tools")
ENDINGS = (".c", ".h", ".lua", ".md", ".py", ".sh", ".sql")
LAWS = "spec/laws.md"
PROMISING = (LAWS, "docs/failures.md")
INVARIANT = re.compile(r"^(?: \*|--)(?: Invariants)?\s+([A-Z]{2,}-\d+)  \S", re.M)
ROW = re.compile(r"^\| ([A-Z]+-?\d+) \|", re.M)
# With a hyphen an invariant or a fault, without one a law; any other letter is an old label.  What may not
# stand before it is looked for after its first letter: so a search goes from one such letter to the next.
CITED = re.compile(r"([A-Z](?<![\w.#&%$\\/\"'<>-].)(?:[A-Z]*-\d{1,2}|[1-9]\d?))(?![\w-]|\.\d)")
# What is written like a label and is none.
OTHERS = {"C11"}
OTHER_WORDS = {"CRC", "GMT", "IEEE", "ISO", "POSIX", "RFC", "SHA", "UTC", "UTF"}
COMMENT = re.compile(r"(/\*.*?\*/)", re.S)
FILE = re.compile(r"`([\w./-]+\.(?:c|h|lua|md|py|sh|sql))`(?:: ([^;|]*))?")


def files(root):
    yield from sorted(root.glob("*.md"))
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in ENDINGS and path.is_file() and path.name != "labels.py":
                yield path


def prose(path, text):
    """The text with all but comments blanked, so that lines keep their numbers."""
    if path.suffix not in (".c", ".h"):
        return text
    parts = COMMENT.split(text)
    parts[::2] = ("\n" * code.count("\n") for code in parts[::2])
    return "".join(parts)


def labels(paths, root):
    declared = collections.defaultdict(list)
    cited = []
    for path, text in paths.items():
        name = path.relative_to(root)
        declaration = ROW if str(name) == LAWS else INVARIANT
        for match in declaration.finditer(text):
            declared[match[1]].append(name)
        said = prose(path, text)
        cited += ((match[1], name, said, match.start()) for match in CITED.finditer(said)
                  if match[1] not in OTHERS and match[1].split("-")[0] not in OTHER_WORDS)
    for label, names in sorted(declared.items()):
        if len(names) > 1:
            yield f"{label} is declared in {' and in '.join(map(str, names))}"
    for label, name, said, at in cited:
        if label not in declared:
            line = said.count("\n", 0, at) + 1
            yield f"{name}:{line}: nothing declares {label}"


def by_name(paths):
    named = collections.defaultdict(list)
    for path in paths:
        named[path.name].append(path)
    return named


def is_there(named, root, name):
    """The files that a name may mean: the path, or any file of that name."""
    last = name.rpartition("/")[2]
    return [p for p in named.get(last, ()) if name in (last, str(p.relative_to(root)))]


def untrue(match, paths, root, named):
    """What a file and its tests, as a row names them, are not."""
    found = is_there(named, root, match[1])
    if not found:
        yield f"there is no {match[1]}"
        return
    text = "".join(paths[p] for p in found)
    names = (match[2] or "").strip(" |")
    for test in re.split(" / " if " / " in names else ", " if "_" in names else "$", names):
        if test not in text:
            yield f"{match[1]} has no {test}"


def promises(page, paths, root, named):
    is_shown = False
    for number, line in enumerate((root / page).read_text().splitlines(), 1):
        if not line.startswith("| "):
            is_shown = line.startswith("|---") and is_shown
            continue
        row = list(FILE.finditer(line))
        for match in row:
            yield from (f"{page}:{number}: {fault}" for fault in untrue(match, paths, root, named))
        if is_shown and not FILE.search(line.split(" | ")[-1]):
            yield f"{page}:{number}: the row names no test"
        is_shown = is_shown or line.endswith("| shown by |")


def main():
    root = pathlib.Path(sys.argv[1])
    paths = {p: p.read_text(errors="replace") for p in files(root)}
    named = by_name(paths)
    faults = [*labels(paths, root), *(fault for page in PROMISING for fault in promises(page, paths, root, named))]
    for fault in faults:
        print(fault)
    print(f"{len(paths)} files, {len(faults)} faults")
    return 1 if faults or not paths else 0


sys.exit(main())
