#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""listed.py ROOT -- every source file is built: a test that no list names never runs."""
import pathlib
import sys

FOLDERS = ("engine", "runtime", "stores", "shards", "coordinator", "face", "policy", "sim", "tools", "tests", "bench", "spec", "examples")
# Not part of a build: it must not compile.
APART = ("tests/lint/role_fault.c", "tests/install/opens.c")


def main():
    root = pathlib.Path(sys.argv[1])
    lists = {p.parent: p.read_text() for f in FOLDERS for p in (root / f).rglob("meson.build")}
    lists[root] = (root / "meson.build").read_text()
    seen, bad = 0, []
    for path in sorted(p for f in FOLDERS for p in (root / f).rglob("*") if p.suffix in (".c", ".cc")):
        name = path.relative_to(root)
        if str(name) in APART:
            continue
        seen += 1
        here = lists.get(path.parent, "")
        if f"'{path.name}'" in here or f"'{path.stem}'" in here:
            continue
        if not any(f"{path.parent.name}/{path.name}'" in text for text in lists.values()):
            bad.append(f"{name}: no meson.build names it")
    print("\n".join(bad + [f"{seen} files, {len(bad)} faults"]))
    return 1 if bad or not seen else 0


sys.exit(main())
