#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""laws_table_test.py GALE PAGE brief|all -- the page's table of laws is what gale sim prints, and the default is the best.

The best is the law with the best worst row.  In brief only some rows are run: those in which each law but the default
has less than any band of tests/sim/laws_test.c lets the default have.
"""
import json
import pathlib
import re
import subprocess
import sys

GALE, PAGE = sys.argv[1], pathlib.Path(sys.argv[2])
IS_BRIEF = {"brief": True, "all": False}[sys.argv[3]]

# As the page calls them, in the order of its columns.
LAWS = {
    "knee": "knee", "gradient": "gradient", "aimd": "aimd", "fixed 20": "fixed", "predecessor": "predecessor",
    "its aimd": "predecessor-aimd", "Vegas": "vegas", "Gradient2": "gradient2", "Envoy": "envoy",
    "failsafe-go": "failsafe-go", "Breakwater": "breakwater",
}
DEFAULT = "knee"
IN_BRIEF = ["mixed", "slower", "contention", "constant", "ramp"]
BAND_LEAST = 0.8  # of all scenes, in tests/sim/laws_test.c
GOODPUT_NEAR = 0.0056  # the page has two digits, rounded from three
P99_NEAR = 0.006  # of it: the page has three

bad = []


def expect(is_so, text):
    if not is_so:
        bad.append(text)


def cells_of(line):
    return [cell.strip().strip("*") for cell in line.strip().strip("|").split("|")]


def table_of(text):
    """The rows by scenario; a row has a cell for each law."""
    lines = text[text.index("| scenario | knee |"):].splitlines()
    end = next(i for i, line in enumerate(lines) if not line.startswith("|"))
    head = cells_of(lines[0])[1:]
    expect(head == list(LAWS), f"the columns are {head}")
    return {cells[0]: cells[1:] for cells in map(cells_of, lines[2:end])}


def said(*flags):
    return subprocess.run([GALE, "sim", "--guard", *flags], check=True, text=True, stdout=subprocess.PIPE).stdout


def all_scenarios():
    text = said("--help")
    return re.findall(r"^  (\S+)", text[text.index("\nScenarios:\n"):], re.M)


def run(scenario):
    lines = map(json.loads, said("--scenario", scenario, "--json").splitlines())
    return {line["law"]: line for line in lines}


def is_near(cell, line):
    goodput, p99 = map(float, cell.split("/"))
    return (abs(goodput - line["goodput"]) <= GOODPUT_NEAR
            and abs(p99 - line["p99_ms"]) <= P99_NEAR * line["p99_ms"])


def faults_of(scenario, cells, lines):
    """The laws whose cell is not what was run."""
    return [f"{scenario}, {name}: the page has {cell}, and gale sim {lines[law]['goodput']:.2f}/{lines[law]['p99_ms']:.3g}"
            for (name, law), cell in zip(LAWS.items(), cells) if not is_near(cell, lines[law])]


def worst_of(column, table):
    return min(float(row[column].split("/")[0]) for row in table.values())


table = table_of(PAGE.read_text())
worst = table.pop("worst")
expect(list(table) == all_scenarios(), f"the page has not the rows of gale sim --guard: {all_scenarios()}")
for column, name in enumerate(LAWS):
    expect(float(worst[column]) == worst_of(column, table), f"{name}: its worst row is {worst_of(column, table)}")
best_other = max(map(float, worst[1:]))
expect(float(worst[0]) > best_other, f"another law's worst row is {best_other}")

ran = {scenario: run(scenario) for scenario in (IN_BRIEF if IS_BRIEF else table)}
for scenario, lines in ran.items():
    bad += faults_of(scenario, table[scenario], lines)
for law in LAWS.values():
    least = min(lines[law]["goodput"] for lines in ran.values())
    expect((least >= BAND_LEAST) == (law == DEFAULT), f"the worst row of {law} is {least:.2f}")

# All of this can fail.
some = IN_BRIEF[0]
expect(len(faults_of(some, table[IN_BRIEF[1]], ran[some])) > 5, "a row of another scenario is taken for this one")

for text in bad:
    print(f"FAIL: {text}")
if bad:
    print(f"gale sim --guard prints the table of {PAGE.name}")
sys.exit(1 if bad else 0)
