#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""configure.py FOLDER -Dname=value ... -- a build folder that has these options.

meson reads its options once, when it sets a folder up.  One that is there already and has
others is reconfigured; options that are not named stay as they are.
"""
import json
import os
import pathlib
import subprocess
import sys


def value_of(option):
    value = option["value"]
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def options_of(folder):
    said = subprocess.run(["meson", "introspect", folder, "--buildoptions"], check=True,
                          stdout=subprocess.PIPE)
    return {option["name"]: value_of(option) for option in json.loads(said.stdout)}


def may_build(folder):
    """As root, and then as a user, is common: make run installs packages, which takes root."""
    there = folder
    while not there.exists():
        there = there.parent
    written = [there] if there != folder else [folder, folder / "build.ninja", folder / ".ninja_log"]
    return all(os.access(path, os.W_OK) for path in written if path.exists())


def main():
    folder = sys.argv[1]
    if not may_build(pathlib.Path(folder).absolute()):
        print(f"You may not write to {folder}, since another user has built there or owns the sources: run this as that "
              f"user (sudo make ...), or remove {folder} first", file=sys.stderr)
        return 1
    # Of one that is named twice, the last counts.
    wanted = dict(option.removeprefix("-D").split("=", 1) for option in sys.argv[2:])
    command = ["meson", "setup", folder, *(f"-D{name}={value}" for name, value in wanted.items())]
    if pathlib.Path(folder, "build.ninja").exists():
        there = options_of(folder)
        if all(there.get(name) == value for name, value in wanted.items()):
            return 0
        command.append("--reconfigure")
    return subprocess.run(command).returncode


sys.exit(main())
