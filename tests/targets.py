#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""targets.py FOLDER SUITE... [but SUITE...] -- what ninja has to build in FOLDER for the tests of these
suites, but for those that are in one of the others, too; and shared libraries, which tests load by name."""
import json
import os
import subprocess
import sys


def introspect(folder, what):
    said = subprocess.run(["meson", "introspect", folder, what], check=True,
                          stdout=subprocess.PIPE)
    return json.loads(said.stdout)


def main(folder, *suites):
    built = introspect(folder, "--targets")
    targets = {target["id"]: target["filename"] for target in built}
    wanted = set()
    at = suites.index("but") if "but" in suites else len(suites)
    suites, but = suites[:at], suites[at + 1:]
    for test in introspect(folder, "--tests"):
        of = {suite.split(":")[-1] for suite in test["suite"]}
        if of & set(suites) and not of & set(but):
            for target in test["depends"]:
                wanted.update(targets[target])
    if not wanted:
        sys.exit(f"{folder} has no tests of {' '.join(suites)}")
    for target in built:
        if target["type"] == "shared library":
            wanted.update(target["filename"])
    print(*sorted(os.path.relpath(path, folder) for path in wanted), sep="\n")


main(*sys.argv[1:])
