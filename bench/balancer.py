#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""balancer.py [BUILD [ROUNDS]] -- what part of a request's processor time is gale's, in examples/balancer?

Two balancers with one thread each stand before one backend: one with a limit for each address that
is never reached and a guard, one with --no-limits.  16 connections make requests to them in turns.  What is
counted is the processor time of all threads of a balancer, the kernel's on its behalf with it.  A third balancer,
without limits, shows how large the noise is.  All are on one processor.  BUILD is what "make bench" builds
(build/bench)."""
import glob
import os
import random
import statistics
import subprocess
import sys

BUILD = sys.argv[1] if len(sys.argv) > 1 else "build/bench"
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 150
REQUESTS = 2000


class Server:
    def __init__(self, program, *arguments):
        self.process = subprocess.Popen([f"{BUILD}/{program}", *arguments], stdout=subprocess.PIPE, text=True)
        self.port = self.process.stdout.readline().split()[-1]

    def ns(self):
        return sum(int(open(file).read().split()[0])
                   for file in glob.glob(f"/proc/{self.process.pid}/task/*/schedstat"))

    def cost(self, count):
        """Processor time of a request, in us."""
        before = self.ns()
        subprocess.run([f"{BUILD}/bench/gale_http", "--send", self.port, "1", "1", str(count)], check=True,
                       stdout=subprocess.DEVNULL)
        return (self.ns() - before) / 1000 / count


def spread(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{100 * middle:.1f} % (half of the rounds: {100 * low:.1f} to {100 * high:.1f})"


def main():
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    backend = Server("examples/httpd", "--port", "0", "--threads", "1", "--limit", "0/s")
    arguments = ["--port", "0", "--threads", "1", f"127.0.0.1:{backend.port}"]
    servers = {"with": Server("examples/balancer", "--limit", "1000000000/h", *arguments),
               "without": Server("examples/balancer", "--no-limits", *arguments),
               "again": Server("examples/balancer", "--no-limits", *arguments)}
    for server in servers.values():
        server.cost(REQUESTS)
    shares, nothing, costs = [], [], []
    for _ in range(ROUNDS):
        cost = {name: servers[name].cost(REQUESTS) for name in random.sample(sorted(servers), 3)}
        shares.append(1 - (cost["without"] + cost["again"]) / 2 / cost["with"])
        nothing.append(1 - cost["without"] / cost["again"])
        costs.append(cost["with"])
    print(f"a request: {statistics.median(costs):.1f} us; gale's share: {spread(shares)}; of nothing: {spread(nothing)}")
    for server in (*servers.values(), backend):
        server.process.terminate()
        assert server.process.wait(30) == 0


main()
