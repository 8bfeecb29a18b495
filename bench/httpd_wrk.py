#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""httpd_wrk.py -- what part of an HTTP server's throughput does a limit leave, by wrk?

    bench/httpd_wrk.py                       after make bench; 2 minutes
    bench/httpd_wrk.py --smoke               each server for a moment

wrk makes requests on 16 connections, with 1,000 API keys in turn.  It asks examples/httpd with a limit that is
never reached and without, and nginx with and without limit_req, where there is an nginx.  They take turns, in an order by
lot; a ratio is of two turns of one round.  A second httpd without a limit shows how large the noise is.  Each server
has one thread, on one processor, and wrk has the other: where the server's is not busy all the time, wrk has no more
to give, or other work has the processors. Then requests for the same time of the server's processor say more.  Half of
the rounds are within the brackets."""
import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "bench/compare"))
import servers  # noqa: E402, of the comparison

KEYS = """
local requests, at = {}, 0
function init()
	for i = 1, 1000 do
		requests[i] = wrk.format("GET", "/", { ["X-Api-Key"] = string.format("client-%09d", i) })
	end
end
function request()
	at = at % #requests + 1
	return requests[at]
end
"""
LIMITED = "limit_req_zone $http_x_api_key zone=z:256m rate=1000000r/s; limit_req_status 429;"
LIMIT = "limit_req zone=z burst=1000000 nodelay;"
BAR = 0.97


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=os.path.join(TOP, "build/bench"), help="what make bench builds (build/bench)")
    parser.add_argument("--rounds", type=int, default=20, help="turns of each (20)")
    parser.add_argument("--seconds", type=int, default=1, help="of a turn (1)")
    parser.add_argument("--smoke", action="store_true", help="each for a moment, to see that it works")
    return parser.parse_args()


class Turns:
    """One after the other, each server on the last processor, and wrk on the first."""

    def __init__(self, scratch, build):
        processors = sorted(os.sched_getaffinity(0))
        self.of_wrk, self.of_servers = {processors[0]}, {processors[-1]}
        self.script = os.path.join(scratch, "keys.lua")
        with open(self.script, "w") as script:
            script.write(KEYS)
        self.servers = {"httpd": servers.GaleServer(scratch, build, 0),
                        "httpd again": servers.GaleServer(scratch, build, 0),
                        "httpd, a limit": servers.GaleServer(scratch, build, 1000000000)}
        if shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin"):
            self.servers["nginx"] = servers.Nginx(scratch)
            self.servers["nginx, limit_req"] = servers.Nginx(scratch, LIMITED, LIMIT)
        os.sched_setaffinity(0, self.of_servers)
        for server in self.servers.values():
            server.start()
        os.sched_setaffinity(0, self.of_wrk)

    def turn(self, name, seconds):
        """Requests a second, and how much of its processor the server had."""
        server = self.servers[name]
        before, began = server.processor_ns(), time.monotonic_ns()
        said = subprocess.run(["wrk", "-t", "1", "-c", "16", "-d", f"{seconds}s", "-s", self.script,
                               f"http://127.0.0.1:{server.port}/"], check=True, capture_output=True, text=True).stdout
        busy = (server.processor_ns() - before) / (time.monotonic_ns() - began)
        if "Non-2xx" in said or "Socket errors" in said:
            raise SystemExit(f"{name}: {said}")
        return float(said.split("Requests/sec:")[1].split()[0]), busy

    def stop(self):
        for server in self.servers.values():
            server.stop()


def ratio(found, name, floor, of=lambda rate, busy: rate):
    """The median of the rounds, and where half of them are."""
    values = [of(*one) / of(*other) for one, other in zip(found[name], found[floor])]
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return middle, f"{middle:.3f} ({low:.3f} to {high:.3f})"


def table(found):
    floors = {"httpd again": "httpd", "httpd, a limit": "httpd", "nginx, limit_req": "nginx"}
    yield "| server | requests a second | its processor | of itself without a limit | the same, of its processor's time | bar | |"
    yield "|---|---|---|---|---|---|---|"
    for name, results in found.items():
        rate, busy = (statistics.median(values) for values in zip(*results))
        kept, spread, share = 0, "", ""
        if name in floors:
            kept, spread = ratio(found, name, floors[name])
            share = ratio(found, name, floors[name], lambda rate, busy: rate / busy)[1]
        bar = f"≥ {BAR} | {'holds' if kept >= BAR else 'misses'}" if name == "httpd, a limit" else "| "
        yield f"| {name} | {rate:,.0f} | {100 * busy:.0f} % | {spread} | {share} | {bar} |"


def main():
    said = options()
    rounds, seconds = (1, 1) if said.smoke else (said.rounds, said.seconds)
    if not shutil.which("wrk"):
        raise SystemExit("wrk is not here: apt-get install wrk")
    with tempfile.TemporaryDirectory(prefix="gale-wrk-") as scratch:
        turns = Turns(scratch, said.build)
        names = list(turns.servers)
        found = {name: [] for name in names}
        for name in names:
            turns.turn(name, 1)
        for _ in range(rounds):
            for name in random.sample(names, len(names)):
                found[name].append(turns.turn(name, seconds))
        turns.stop()
    print("\n".join(table(found)))
    if "nginx" not in found:
        print("\nnginx is not here: apt-get install nginx")


main()
