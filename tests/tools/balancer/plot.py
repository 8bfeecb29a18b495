#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""plot.py BALANCER BACKEND LOAD SECONDS SVG -- draws how examples/balancer serves while a backend fails.

One of three backends becomes ten times slower, is fast again, dies and returns.  Each of six phases lasts SECONDS.
24 clients make one request after the other.  Each backend works on four requests at a time, for 40 ms each."""
import os
import subprocess
import sys
import tempfile
import time

from scene import Backend, Balancer, Load, address

SLICES = 10  # of each phase


def main():
    balancer_program, backend_program, load_program, seconds, svg = sys.argv[1:]
    slice_s = float(seconds) / SLICES
    rows = []
    with Backend(backend_program, 4, 40) as a, Backend(backend_program, 4, 40) as b, \
            Backend(backend_program, 4, 40) as c, \
            Balancer(balancer_program, address(a), address(b), address(c)) as balancer, \
            Load(load_program, 24, int(slice_s * 1000), balancer.port) as load:
        phases = (("healthy", lambda: None), ("slow", lambda: c.takes(400)), ("fast again", lambda: c.takes(40)),
                  ("dead", c.kill), ("returned", c.returns), ("healthy", lambda: None))
        names = [f'balancer_calls_total{{backend="{address(x)[:-2]}"}}' for x in (a, b, c)]
        begun = last = time.monotonic()
        before, labels = [0, 0, 0], []
        for phase, begin in phases:
            begin()
            labels.append((time.monotonic() - begun, phase))
            for _ in range(SLICES):
                time.sleep(slice_s)
                metrics = balancer.metrics()
                now, calls = time.monotonic(), [int(metrics[name]) for name in names]
                rows.append([now - begun, *((x - y) / (now - last) for x, y in zip(calls, before))])
                before, last = calls, now
        load.end()
        good = [(ms, good) for ms, good, *_ in load.slices[0]]
        sums = load.sums()
        print(f"good {sums[1]}, refused {sums[2]}, failed {sums[3]}, lost {sums[4]}, without an answer {load.left}")
    assert (sums[4], load.left) == (0, 0)
    draw(svg, rows, good, labels)


def draw(svg, rows, good, labels):
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/calls", "w", encoding="ascii") as file:
            file.writelines(" ".join(f"{value:.2f}" for value in row) + "\n" for row in rows)
        with open(f"{folder}/good", "w", encoding="ascii") as file:
            at = 0.0
            for ms, count in good:
                at += ms / 1000
                file.write(f"{at:.2f} {1000 * count / ms if ms else 0:.2f}\n")
        marks = "".join(f"set label '{phase}' at {at:.2f}, graph 0.94 offset 0.5, 0\n" for at, phase in labels)
        script = (f"set terminal svg size 760,560\nset output '{svg}'\nset multiplot layout 2,1\n"
                  f"set key outside right\nset xlabel 'seconds'\nset xrange [0:{rows[-1][0]:.2f}]\n"
                  f"set xtics {labels[1][0]:.2f}\nset format x '%.0f'\nset grid xtics\n"
                  f"{marks}set yrange [0:400]\nset title 'good replies a second, to 24 clients'\n"
                  f"plot '{folder}/good' using 1:2 with lines title 'all'\n"
                  f"set yrange [0:150]\nset title 'calls a second to each backend'\n"
                  f"plot '{folder}/calls' using 1:2 with lines title 'a', '' using 1:3 with lines title 'b', "
                  f"'' using 1:4 with lines title 'c'\n")
        subprocess.run(["gnuplot"], input=script, text=True, check=True)
    assert os.path.getsize(svg) > 0


main()
