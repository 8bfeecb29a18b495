#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""syntax.py FOLDER [BUILT] -- what the compiler of FOLDER says to each source, without code for it.

Not to those that the same compiler has made objects of in BUILT.  Sources that are themselves made
are made first.  A warning is an error where it is one in FOLDER.
"""
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys


def made(folder):
    said = subprocess.run(["meson", "introspect", folder, "--targets"], check=True,
                          stdout=subprocess.PIPE)
    return [os.path.relpath(path, folder)
            for target in json.loads(said.stdout) if target["type"] == "custom"
            for path in target["filename"] if path.endswith((".c", ".h"))]


def checks(folder, built):
    with open(os.path.join(folder, "compile_commands.json")) as commands:
        for entry in json.load(commands):
            words = shlex.split(entry["command"])
            at = words.index("-o")
            if built and os.path.exists(os.path.join(built, words[at + 1])):
                continue
            yield entry["file"], entry["directory"], words[:at] + words[at + 2:] + ["-fsyntax-only"]


def check(source, directory, words):
    words = [word for word in words if word not in ("-c", "-MD")]
    for flag in ("-MQ", "-MF"):
        if flag in words:
            at = words.index(flag)
            del words[at:at + 2]
    said = subprocess.run(words, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    return source, said.returncode, said.stdout


def main(folder, built=None):
    subprocess.run(["ninja", "-C", folder, *made(folder)], check=True)
    bad = read = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for source, status, said in pool.map(lambda entry: check(*entry), checks(folder, built)):
            read += 1
            print(said, end="")
            if status != 0:
                print(f"FAILED: {source}")
                bad += 1
    print(f"{read} sources read, {bad} bad")
    return 1 if bad else 0


sys.exit(main(*sys.argv[1:]))
