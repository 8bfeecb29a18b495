#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""prove.py EXPLORER [ARG...] -- runs the explorer on spec/explore/runs.txt, and TLC on spec/*.tla.

ARGs go to the explorer, before the list.  What comes out must be what the table in spec/README.md
says.  TLC is run when TLA2TOOLS_JAR names tla2tools.jar; the counts of both must then agree with
spec/expected.txt, and wherever a run says tlc=NAME, with each other.  What is written down is
compared in any case.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

SPEC = pathlib.Path(__file__).resolve().parent
RUNS = SPEC / "explore" / "runs.txt"
EXPECTED = SPEC / "expected.txt"
README = SPEC / "README.md"
OUTCOMES = {0: "holds", 12: "refuted", 13: "refuted, in the long run"}


def lines(path):
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            yield line


def read_expected():
    """{configuration: (module, exit status, states or None)}"""
    found = {}
    for line in lines(EXPECTED):
        words = line.split()
        if len(words) != 4 or not words[2].isdigit():
            sys.exit(f"{EXPECTED.name}: not MODULE CONFIGURATION STATUS STATES: {line}")
        states = None if words[3] == "-" else int(words[3])
        found[words[1]] = (words[0], int(words[2]), states)
    return found


def read_twins():
    """{configuration: (run, its states)} of the explorer's list."""
    found = {}
    for line in lines(RUNS):
        twin = re.search(r"\btlc=(\S+)", line)
        if twin:
            states = re.search(r"\bstates=(\d+)", line)
            found[twin[1]] = (line.split()[0], int(states[1]) if states else None)
    return found


def row_of(line):
    """(run, what came out of it) of a line of the explorer's table, or None.  Not the constants,
    which may be written in another way, and not the time that it took."""
    cells = line.strip().split(" | ")
    if len(cells) != 11 or not cells[3].isdigit():
        return None
    return cells[0].removeprefix("| "), " | ".join(cells[3:9])


def rows_of(text):
    return dict(filter(None, map(row_of, text)))


def compare_written(expected, twins):
    faults = [f"{name}: no such configuration" for name in expected
              if not (SPEC / "cfg" / f"{name}.cfg").exists()]
    faults += [f"cfg/{path.name}: not in {EXPECTED.name}" for path in (SPEC / "cfg").glob("*.cfg")
               if path.stem not in expected]
    for name, (run, states) in twins.items():
        if name not in expected:
            faults.append(f"{run}: tlc={name}, which {EXPECTED.name} does not know")
        elif expected[name][2] != states:
            faults.append(f"{run}: {states} states, {name} has {expected[name][2]}")
    runs = [line.split()[0] for line in lines(RUNS)]
    written = rows_of(README.read_text().splitlines())
    faults += [f"{README.name} has a run called {run}, and there is none" for run in written
               if run not in runs]
    faults += [f"{README.name} has no run called {run}" for run in runs if run not in written]
    return faults


def explore(command):
    """Faults; what the explorer prints is printed."""
    try:
        explorer = subprocess.Popen([*command, str(RUNS)], stdout=subprocess.PIPE, text=True)
    except OSError as error:
        return [f"the explorer cannot be run: {error}"]
    written, faults, rows = rows_of(README.read_text().splitlines()), [], 0
    for line in explorer.stdout:
        print(line, end="", flush=True)
        run, found = row_of(line) or (None, None)
        rows += run is not None
        if run in written and written[run] != found:
            faults.append(f"{run}: {README.name} has | {written[run]} |, not | {found} |")
    if explorer.wait() != 0:
        faults.append(f"the explorer ended with {explorer.returncode}")
    return faults if rows > 0 else faults + ["nothing was explored"]


def run_tlc(jar, module, name):
    """(exit status, distinct states or None, seconds)"""
    since = time.monotonic()
    with tempfile.TemporaryDirectory() as work:
        done = subprocess.run(
            ["java", "-XX:+UseSerialGC", "-cp", jar, "tlc2.TLC", "-metadir", work, "-noGenerateSpecTE",
             "-config", f"cfg/{name}.cfg", f"{module}.tla"],
            cwd=SPEC, capture_output=True, text=True, check=False)
    states = re.findall(r"(\d+) distinct states found", done.stdout)
    return done.returncode, int(states[-1]) if states else None, time.monotonic() - since


def check_tlc(jar, name, expected, twins):
    """(a row of the table, a fault or None)"""
    module, status, states = expected
    ended, found, seconds = run_tlc(jar, module, name)
    fault = None
    if ended != status:
        fault = f"{name}: TLC ended with {ended}, where {status} is expected"
    elif states is not None and found != states:
        fault = f"{name}: {found} states, where {states} are expected"
    twin = twins[name][0] if name in twins else ""
    row = f"| {module} | {name} | {found if states is not None else ''} | {twin} |"
    return f"{row} {OUTCOMES.get(ended, 'failed')} | {seconds:.1f} |", fault


def prove_tlc(jar, expected, twins):
    jar = str(pathlib.Path(jar).resolve())
    if not pathlib.Path(jar).is_file():
        return [f"TLA2TOOLS_JAR: there is no {jar}"]
    if not shutil.which("java"):
        return ["TLA2TOOLS_JAR: TLC needs java, which is not there"]
    print("\n| module | configuration | states | the same as | verdict | s |\n|---|---|---|---|---|---|")
    faults = []
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(check_tlc, jar, name, what, twins) for name, what in expected.items()]
        for job in jobs:
            row, fault = job.result()
            print(row, flush=True)
            faults += [fault] if fault else []
    print(f"\n{len(jobs)} configurations, {len(faults)} not as they must be")
    return faults if jobs else ["no configuration: nothing was checked"]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    expected, twins = read_expected(), read_twins()
    faults = compare_written(expected, twins)
    faults += explore(sys.argv[1:])
    jar = os.environ.get("TLA2TOOLS_JAR")
    if jar:
        faults += prove_tlc(jar, expected, twins)
    else:
        print("\nTLC was not run, as TLA2TOOLS_JAR does not name tla2tools.jar: the counts in "
              "spec/expected.txt\nare compared with the explorer's, as far as the states are the same.")
    print("\n".join(faults), end="\n" if faults else "", file=sys.stderr)
    return 1 if faults else 0


sys.exit(main())
