#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""report_test.py BUILD [ARGUMENT...] -- compare.py writes a whole report: its figures are of a moment, and its shape is that of a long one.

ARGUMENTs are for compare.py.  Each section is there, each table has its columns, each row a figure or why there is none,
each picture is a plot, and each peer that is not here a line that says what to install.  A peer that cannot be run ends in a sentence."""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD, ARGUMENTS = sys.argv[1], sys.argv[2:]
SECTIONS = {"process": "In one process", "redis": "Over Redis", "postgres": "Over PostgreSQL", "http": "HTTP servers",
            "memory": "Bytes of a key", "fleet": "A fleet over a shared store", "flight": "In flight above a ceiling",
            "outage": "What clients see when Redis stops"}
FIGURE = re.compile(r"\d|^-$|^not within the test$")


def compare(*arguments):
    return subprocess.run([os.path.join(HERE, "compare.py"), "--build", BUILD, *arguments], capture_output=True, text=True)


def asked(flag, otherwise):
    return ARGUMENTS[ARGUMENTS.index(flag) + 1].split(",") if flag in ARGUMENTS else otherwise


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def faults_of_table(lines):
    columns = cells(lines[0])
    if not re.fullmatch(r"(\|---)+\|", lines[1]) or len(lines) < 3:
        yield f"a table without rows: {lines[0]}"
    for row in map(cells, lines[2:]):
        if len(row) != len(columns):
            yield f"{len(row)} cells of {len(columns)}: {row}"
        elif not any(FIGURE.search(cell) or re.match(r"cannot: .{5}", cell) for cell in row[1:]):
            yield f"no figure, and no word why: {row}"


def faults_of_section(text, heading, folder):
    part = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if not part:
        yield f"there is no section {heading}"
        return
    if not re.search(r"^\|", part[1], re.M):
        yield f"{heading} has no table"
    for picture in re.findall(r"!\[.+?\]\((.+?)\)", part[1]):
        with open(os.path.join(folder, picture)) as file:
            if "<svg" not in file.read(1000):
                yield f"{picture} is no plot"


def faults_of(text, folder):
    if not text.startswith("# gale and its peers\n") or "## Where gale loses\n" not in text:
        yield "the report has another head"
    for table in re.findall(r"(?:^\|.*\n?)+", text, re.M):
        yield from faults_of_table(table.strip().split("\n"))
    for question in asked("--questions", SECTIONS):
        yield from faults_of_section(text, SECTIONS[question], folder)
    for line in re.findall(r"^- .* is not here: *(.*)", text, re.M):
        if "install" not in line and "build" not in line:
            yield f"it is not said what to install: {line}"
    if not re.search(r"!\[", text) and "install gnuplot-nox" not in text:
        yield "there is no plot"


def planted(text, folder):
    """Faults that must be found."""
    heading = SECTIONS[asked("--questions", SECTIONS)[0]]
    row = re.search(r"^\|---.*\n(\| .*)\n", text, re.M)[1]
    short, bare = row.rsplit(" | ", 1)[0] + " |", "| gale" + " | " * row.count(" | ") + " |"
    for bad in (text.replace(f"## {heading}\n", "## Nothing\n"), text.replace(row, short), text.replace(row, bare),
                re.sub(r"!\[(.+?)\]\(.+?\)", rf"![\1]({os.path.basename(__file__)})", text, count=1)):
        assert bad != text, row
        with open(os.path.join(folder, os.path.basename(__file__)), "w") as file:
            file.write("no plot")
        assert list(faults_of(bad, folder)), "a fault was planted, and not found"


def refuses(status, sentence, *arguments):
    done = compare(*arguments)
    assert done.returncode == status and sentence in done.stderr and "Traceback" not in done.stderr, done


def main():
    refuses(2, "no peer is called nobody", "--peers", "nobody")
    refuses(2, "no question is called what", "--questions", "what")
    refuses(2, "is not above 0", "--seconds", "0")
    refuses(1, "has no drivers", "--build", "/nowhere")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "compare.md")
        done = compare("--smoke", "--out", path, *ARGUMENTS)
        assert done.returncode == 0 and "the report is" in done.stdout, done
        with open(path) as file:
            text = file.read()
        faults = list(faults_of(text, folder))
        print("\n".join(faults))
        assert not faults, text
        planted(text, folder)


main()
