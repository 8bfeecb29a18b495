#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""labels.py ROOT -- each label means one thing, and its text is written down.

LEASE-2     an invariant: the head of one file declares it, by two spaces after the label
L5, W-4     a law, or a fault that one comes from: a row of spec/laws.md declares it
All else cites, in comments and, with a hyphen, in strings.  What spec/laws.md and docs/failures.md
say of files and tests must be true: each file that a row names is there, and each test that it names
after a file is one of that file.  Each row of a label is in a table whose last column says what shows
it, and each row of such a table names a test there: a case of a file under tests/, or a file under
tests/ that has no cases.
"""
import collections
import pathlib
import re
import sys

FOLDERS = ("bench", "coordinator", "docs", "engine", "examples", "face", "include", "policy", "runtime", "shards", "sim",
           "spec", "stores", "tests", "tools")
ENDINGS = (".build", ".c", ".cc", ".h", ".in", ".js", ".lua", ".md", ".py", ".sh", ".sql", ".tla", ".yml")
LAWS = "spec/laws.md"
PROMISING = (LAWS, "docs/failures.md")
INVARIANT = re.compile(r"^(?: \*|--)(?: Invariants)?\s+([A-Z]{2,}-\d+)  \S", re.M)
ROW = re.compile(r"^\| ([A-Z]+-?\d+) \|", re.M)
# With a hyphen an invariant or a fault, without one a law; any other letter is an old label.  What may not
# stand before it is looked for after its first letter: so a search goes from one such letter to the next.
CITED = re.compile(r"([A-Z](?<![\w.#&%$\\/\"'<>-].)(?:[A-Z]*-\d{1,2}|[1-9]\d?))(?![\w-]|\.\d)")
# What is written like a label and is none.
OTHERS = {"C11"}
OTHER_WORDS = {"CRC", "GMT", "IEEE", "ISO", "POSIX", "RFC", "SHA", "UTC", "UTF", "YB"}
COMMENT = re.compile(r"(/\*.*?\*/)", re.S)
LABEL = re.compile(r"\b[A-Z]+-\d{1,2}\b")
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
SHOWN = ("| shown by |", "| fails without it |")
CASE = r"^\s*(?:cmocka_unit_test\w*|[A-Z_]+)\(\s*%s\b"
FILE = re.compile(r"`([\w./-]+\.(?:c|h|lua|md|py|sh|sql))`(?:: ([^;|]*))?")


def files(root):
    yield from sorted(root.glob("*.md"))
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in ENDINGS and path.is_file() and path.name != "labels.py":
                yield path


def strings(code):
    """The labels with a hyphen that strings have, since a law's looks like much else; lines keep their numbers."""
    lines = (" ".join(STRING.findall(line)) for line in code.split("\n"))
    return "\n".join(" ".join(LABEL.findall(line)) for line in lines)


def prose(path, text):
    """The text with all but comments and strings blanked, so that lines keep their numbers."""
    if path.suffix not in (".c", ".h"):
        return text
    parts = COMMENT.split(text)
    parts[::2] = map(strings, parts[::2])
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


def names_of(match):
    """The tests that stand after a file in a row."""
    names = (match[2] or "").strip(" |")
    if not names:
        return []
    return re.split(" / " if " / " in names else ", " if "_" in names else "$", names)


def has(text, test):
    return re.search(CASE % re.escape(test), text, re.M) if "cmocka_unit_test" in text else test in text


def untrue(match, paths, root, named):
    """What a file and its tests, as a row names them, are not."""
    found = is_there(named, root, match[1])
    if not found:
        yield f"there is no {match[1]}"
        return
    text = "".join(paths[p] for p in found)
    for test in names_of(match):
        if not has(text, test):
            yield f"{match[1]} has no {test}"


def is_test(match, paths, root, named):
    """A case of a file of tests, or such a file that has no cases."""
    found = [p for p in is_there(named, root, match[1]) if p.is_relative_to(root / "tests")]
    return found and (names_of(match) or not any("cmocka_unit_test" in paths[p] for p in found))


def promises(page, paths, root, named):
    is_shown = False
    for number, line in enumerate((root / page).read_text().splitlines(), 1):
        if not line.startswith("| "):
            is_shown = line.startswith("|---") and is_shown
            continue
        rows = list(FILE.finditer(line))
        faults = [fault for match in rows for fault in untrue(match, paths, root, named)]
        shown = FILE.finditer(line.split(" | ")[-1])
        if is_shown and not any(is_test(match, paths, root, named) for match in shown):
            faults.append("the row names no test")
        if page == LAWS and ROW.match(line) and not is_shown:
            faults.append("no column of the table says what shows it")
        yield from (f"{page}:{number}: {fault}" for fault in faults)
        is_shown = is_shown or line.endswith(SHOWN)


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
