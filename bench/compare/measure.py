# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""measure.py -- the questions: what is asked of which peers, in turns.

A question has works, and each work has entries, which all do it.  One round is a turn of each entry in an order by
lot; so a machine that is busy for a while is busy for all.
"""
import array
import itertools
import os
import random
import signal
import subprocess
import sys
import time

import peers
import servers

DRAWN = 65536  # of Zipf; of 1,000,000 keys each comes once in a round
SOME = 10000
MOST = 1000000
TURN_MOST = 10.0  # seconds, of one that is made anew
CONNECTIONS = 16  # of a client of HTTP servers
FLEET = 4  # processes
FLEET_LIMIT = 2000
FLEET_SECONDS = 2.0
GUARD_SECONDS = 1.0  # at least
CEILING = 16
HOLD_MS = 10
WORKERS = 16  # of each process of a fleet
OUTAGE_RATE = 50
OUTAGE = (2.0, 2.0, 3.0)  # seconds before, during and after


def only_for_a_moment():
    """Figures that say nothing, in a report that is complete."""
    global SOME, MOST, FLEET_SECONDS, GUARD_SECONDS, OUTAGE
    SOME, MOST, FLEET_SECONDS, GUARD_SECONDS, OUTAGE = 100, 1000, 0.4, 0.1, (0.2, 0.2, 0.4)


def write_draws(setting, count):
    """Which keys are asked for: the same for all."""
    os.makedirs(setting.draws, exist_ok=True)
    chosen = random.Random(1)
    if count == 1:
        drawn = [0] * 64
    elif count <= DRAWN:
        weights = list(itertools.accumulate(1 / rank for rank in range(1, count + 1)))
        drawn = chosen.choices(range(count), cum_weights=weights, k=DRAWN)
    else:
        drawn = list(range(count))
        chosen.shuffle(drawn)
    with open(os.path.join(setting.draws, str(count)), "wb") as file:
        array.array("I", drawn).tofile(file)


class Progress:
    """A line that is written over on a terminal, and one for each work elsewhere."""

    def __init__(self):
        self.began = time.monotonic()

    def say(self, text, last=False):
        line = f"{time.monotonic() - self.began:5.0f} s  {text}"
        if sys.stderr.isatty():
            print(f"\r\033[K{line}", end="\n" if last else "", file=sys.stderr, flush=True)
        elif last:
            print(line, file=sys.stderr, flush=True)


class Work:
    """Words of the line protocol, and what they are called in the report: what is asked, and in which way."""

    def __init__(self, title, way, **words):
        self.title = title
        self.way = way
        self.words = words


class Entry:
    """A peer that does a work, in one way.  server: its processor time is told, too."""

    def __init__(self, title, driver, is_gale=False, server=None):
        self.title = title
        self.driver = driver
        self.is_gale = is_gale
        self.server = server

    def turn(self, seconds, **words):
        """A machine that stands still may leave no time for one call: then the turn is made anew, and is longer."""
        before = self.server.processor_ns() if self.server else 0
        result = self.driver.do(seconds=seconds, **words)
        if "cannot" in result:
            return result
        if not result["operations"]:
            if seconds > TURN_MOST:
                raise RuntimeError(f"{self.title} makes no call in {seconds:g} s: {words}")
            return self.turn(2 * seconds, **words)
        if self.server:
            result["us"] = (self.server.processor_ns() - before) / 1000 / result["operations"]
        return result


class Measure:
    def __init__(self, setting, chosen, seconds, runs, keys):
        self.setting = setting
        self.chosen = chosen
        self.seconds = seconds
        self.runs = runs
        self.keys = keys
        self.progress = Progress()
        self.spaces = itertools.count()
        self.missing = {}  # title: what to install
        for count in {1, keys, *self.key_counts()}:
            write_draws(setting, count)

    def key_counts(self):
        return [1, SOME, MOST]

    def here(self, some):
        """Those of some that were chosen and are here; notes the others that were chosen."""
        found = []
        for peer in some:
            if self.chosen and peer.name not in self.chosen:
                continue
            why = peer.lacks(self.setting)
            if why:
                self.missing[peer.title] = why
            else:
                found.append(peer)
        return found

    def contest(self, question, works, entries):
        """{(title, way): {entry: [result of each round], or why it cannot}}, as they are called in the report."""
        found, spaces = {}, {}
        for number, work in enumerate(works):
            # Works that differ in threads alone find their keys prepared.
            space = spaces.setdefault((work.words["work"], work.words["keys"]), f"s{next(self.spaces)}")
            found[work.title, work.way] = results = {}
            title = f"{question}: {work.title}" + f", {work.way}" * bool(work.way)
            for entry in entries:
                self.progress.say(f"{title}: {entry.title} warms up")
                result = entry.turn(self.seconds / 2, space=space, **work.words)
                results[entry.title] = result.get("cannot", [])
            able = [entry for entry in entries if results[entry.title] == []]
            for run in range(self.runs):
                self.progress.say(f"{title} ({number + 1} of {len(works)}): round {run + 1} of {self.runs}")
                for entry in random.sample(able, len(able)):
                    results[entry.title].append(entry.turn(self.seconds, space=space, **work.words))
            self.progress.say(title, last=True)
        return found

    # ---- In one process --------------------------------------------------------------------------------

    def key_title(self, count):
        return {1: "one hot key", SOME: f"{SOME:,} keys by Zipf"}.get(count, f"{count:,} keys")

    def in_process(self):
        works = [Work(f"{verdict}, {self.key_title(count)}", way, work=verdict, keys=count, threads=threads)
                 for verdict in ("allow", "deny") for count in self.key_counts()
                 for way, threads in (("1 thread", 1), ("2 threads", 2))]
        entries = [Entry(peer.title, peer.open(self.setting), peer.is_gale) for peer in self.here(peers.PROCESS)]
        found = self.contest("in one process", works, entries)
        for entry in entries:
            entry.driver.close()
        return found

    # ---- Over a store ----------------------------------------------------------------------------------

    def over(self, name, server, address, some):
        ways = {"1 thread": (1, 1), "2 threads": (2, 1), "1 thread, 64 under way": (1, 64)}
        # Before a denial each key is used up, which takes too long for a million.
        works = [Work(f"{verdict}, {self.key_title(count)}", way, work=verdict, keys=count, threads=threads, depth=depth)
                 for verdict, counts in (("allow", self.key_counts()), ("deny", self.key_counts()[:2]))
                 for count in counts for way, (threads, depth) in ways.items()]
        entries = [Entry(peer.title, peer.open(self.setting, address), peer.is_gale, server) for peer in self.here(some)]
        found = self.contest(f"over {name}", works, entries)
        for entry in entries:
            entry.driver.close()
        return found

    def over_redis(self):
        if not self.here(peers.REDIS):
            return {}
        with self.redis() as redis:
            return self.over("Redis", redis.server, redis.address, peers.REDIS_CALLS)

    def over_postgres(self):
        if not self.here(peers.POSTGRES):
            return {}
        with self.postgres() as postgres:
            return self.over("PostgreSQL", postgres.server, postgres.address, peers.POSTGRES_CALLS)

    def redis(self):
        server = servers.Redis(self.setting.scratch).start()
        return Store(self.setting, server, f"127.0.0.1:{server.port}", f"redis://127.0.0.1:{server.port}")

    def postgres(self):
        server = servers.Postgres(self.setting.scratch).start()
        return Store(self.setting, server, server.url, server.url)

    # ---- HTTP ------------------------------------------------------------------------------------------

    def http_servers(self, limit):
        """{title: server} of those that are here; limit: requests a day for each key, 0: none."""
        scratch, build, found = self.setting.scratch, self.setting.build, {}
        titles = {peers.HTTP_SERVER: ("", "gale"), peers.NGINX: ("", "limit_req"), peers.HAPROXY: ("", "stick table")}
        for peer in self.here(titles):
            title = f"{peer.title}, {titles[peer][1] if limit else 'no limit'}"
            if peer is peers.HTTP_SERVER:
                server = servers.GaleServer(scratch, build, limit)
            elif peer is peers.NGINX:
                rate, burst = ("1r/m", "") if limit == 1 else ("1000000r/s", "burst=1000000 nodelay")
                server = servers.Nginx(
                    scratch, f"limit_req_zone $http_x_api_key zone=z:256m rate={rate}; limit_req_status 429;" if limit else "",
                    f"limit_req zone=z {burst};" if limit else "")
            else:
                server = servers.Haproxy(
                    scratch, "backend counts\n    stick-table type string len 32 size 2m expire 1d store http_req_rate(1d)"
                    if limit else "",
                    "http-request track-sc0 req.hdr(x-api-key) table counts\n    http-request return status 429 if "
                    f"{{ sc_http_req_rate(0,counts) gt {limit} }}" if limit else "")
            found[title] = server
        return found

    def http_entries(self, limits):
        some, opened = [], []
        for limit in limits:
            for title, server in self.http_servers(limit).items():
                server.start()
                opened.append(server)
                driver = peers.HTTP_SERVER.open(self.setting, str(server.port))
                some.append(Entry(title, driver, title.startswith("gale"), server))
        return some, opened

    def http(self):
        found = {}
        for verdict, limits, counts in (("allow", (0, 1000000000), self.key_counts()), ("deny", (1,), self.key_counts()[:2])):
            works = [Work(f"{verdict}, {self.key_title(count)}", "", work=verdict, keys=count, depth=CONNECTIONS)
                     for count in counts]
            entries, opened = self.http_entries(limits)
            found.update(self.contest("HTTP servers", works, entries))
            for entry in entries:
                entry.driver.close()
            for server in opened:
                server.stop()
        return found

    # ---- Memory ----------------------------------------------------------------------------------------

    def memory(self):
        """{group: {title: {"client": bytes, "server": bytes}, or why it cannot}}, each in a process of its own."""
        found = {"in one process": {peer.title: self.fill(peer, "") for peer in self.here(peers.PROCESS)}}
        for name, store, some in (("Redis", self.redis, peers.REDIS), ("PostgreSQL", self.postgres, peers.POSTGRES)):
            found[name] = {}
            for peer in self.here(some):
                with store() as at:
                    found[name][peer.title] = self.fill(peer, at.address, at.server.used_bytes)
        found["HTTP servers"] = {}
        for title, server in self.http_servers(1000000000).items():
            server.start()
            # The memory that the first requests take is not of keys.
            peers.HTTP_SERVER.open(self.setting, str(server.port)).do(work="allow", keys=1, depth=CONNECTIONS, seconds=0.2)
            found["HTTP servers"][title] = self.fill(peers.HTTP_SERVER, str(server.port), server.resident_bytes)
            server.stop()
        return found

    def fill(self, peer, address, used_bytes=None):
        self.progress.say(f"bytes of a key: {peer.title}", last=True)
        driver = peer.open(self.setting, address)
        before = used_bytes() if used_bytes else 0
        result = driver.do(work="fill", keys=self.keys, space="fill")
        after = used_bytes() if used_bytes else 0
        driver.close()
        if "cannot" in result:
            return result["cannot"]
        return {"client": result["bytes"], "server": (after - before) / result["operations"] if used_bytes else None}

    # ---- A fleet ---------------------------------------------------------------------------------------

    def fleet(self):
        """{store: {title: {"even": [admitted of each run], "moving": [...]}}}"""
        found = {}
        for name, store, some in (("Redis", self.redis, peers.REDIS), ("PostgreSQL", self.postgres, peers.POSTGRES)):
            if not self.here(some):
                continue
            found[name] = {peer.title: {"even": [], "moving": []} for peer in self.here(some)}
            with store() as at:
                # The drivers of one peer are opened at a time: those of all would be many.
                for peer in self.here(some):
                    drivers = [peer.open(self.setting, at.address) for _ in range(FLEET)]
                    for run, demand in itertools.product(range(self.runs), ("even", "moving")):
                        self.progress.say(f"a fleet over {name}: {peer.title}: run {run + 1} of {self.runs}")
                        found[name][peer.title][demand].append(self.fleet_run(drivers, demand))
                    self.progress.say(f"a fleet over {name}: {peer.title}", last=True)
                    for driver in drivers:
                        driver.close()
        return found

    def fleet_run(self, drivers, demand):
        space = f"s{next(self.spaces)}"
        part = FLEET_SECONDS / FLEET
        for number, driver in enumerate(drivers):
            # Twice the limit is asked for, by all at a time or by one after the other.
            when = (0.3, 0.3 + FLEET_SECONDS) if demand == "even" else (0.3 + part * number, 0.3 + part * (number + 1))
            rate = 2 * FLEET_LIMIT / FLEET / (when[1] - when[0])
            driver.send(work="fleet", space=space, limit=FLEET_LIMIT, rate=int(rate), **{"from": when[0], "until": when[1]})
        results = [driver.hear() for driver in drivers]
        # One that cannot has made no calls.
        return {name: sum(result.get(name, 0) for result in results) for name in ("operations", "allowed", "failed")}

    # ---- In flight -------------------------------------------------------------------------------------

    def in_flight(self):
        """{title: [counts of the backend, with the workers' "wait_ms" and "refused"]}"""
        found = {}
        seconds = max(GUARD_SECONDS, 4 * self.seconds)
        fleet = self.here(peers.GUARD)
        if fleet:
            with self.redis() as redis:
                for peer in fleet:
                    drivers = [peer.open(self.setting, redis.address) for _ in range(FLEET)]
                    found[f"{peer.title}: {FLEET} processes"] = self.guard_runs(peer.title, drivers, seconds)
        for peer, number in itertools.product(self.here([peers.NGINX, peers.HAPROXY]), (1, 2)):
            backend = servers.Backend(self.setting.build, HOLD_MS, CEILING)
            proxies = [self.proxy(peer, backend.port).start() for _ in range(number)]
            drivers = [peer.open(self.setting, str(proxies[i % number].port)) for i in range(FLEET)]
            what = "limit_conn" if peer is peers.NGINX else "maxconn"
            title = f"{peer.title} {what}: {number} prox{'y' if number == 1 else 'ies'}"
            found[title] = self.guard_runs(title, drivers, seconds, backend)
            for proxy in proxies:
                proxy.stop()
        return found

    def proxy(self, peer, port):
        if peer is peers.NGINX:
            return servers.Nginx(self.setting.scratch, "limit_conn_zone $server_port zone=z:1m; limit_conn_status 503;",
                                 f"limit_conn z {CEILING};", port)
        return servers.Haproxy(self.setting.scratch, backend=port, ceiling=CEILING)

    def guard_runs(self, title, drivers, seconds, backend=None):
        backend = backend or servers.Backend(self.setting.build, HOLD_MS, CEILING)
        counts = []
        # The first is to warm up; guards of a fleet find each other.
        for run in range(self.runs + 1):
            self.progress.say(f"in flight: {title}: run {run} of {self.runs}")
            backend.counts()
            for driver in drivers:
                driver.send(work="guard", space="guard", limit=CEILING, workers=WORKERS, seconds=seconds, port=backend.port)
            results = [driver.hear() for driver in drivers]
            count = backend.counts()
            count["rate"] = count["served"] / seconds
            count["refused"] = sum(result["denied"] for result in results)
            count["failed"] = sum(result["failed"] for result in results)
            count["p99"] = max(result["p99"] for result in results)
            counts.append(count)
        self.progress.say(f"in flight: {title}", last=True)
        for driver in drivers:
            driver.close()
        backend.stop()
        return counts[1:]

    # ---- Redis stops -----------------------------------------------------------------------------------

    def outages(self):
        """{how: {title: {phase: {...}}}}; all peers ask the same server at the same time."""
        some = self.here(peers.OUTAGE)
        found = {}
        for how in ("does not answer, and goes on", "is killed, and started again empty") if some else ():
            self.progress.say(f"Redis {how}")
            with self.redis() as redis:
                drivers = [peer.open(self.setting, redis.address) for peer in some]
                for driver in drivers:
                    driver.do(work="outage", space=f"o-{driver.peer.name}", rate=OUTAGE_RATE, seconds=0.5)
                for driver in drivers:
                    driver.send(work="outage", space=f"o-{driver.peer.name}", rate=OUTAGE_RATE, seconds=sum(OUTAGE))
                time.sleep(OUTAGE[0])
                began = time.monotonic()
                if how.startswith("does"):
                    redis.server.process.send_signal(signal.SIGSTOP)
                    time.sleep(OUTAGE[1])
                    redis.server.process.send_signal(signal.SIGCONT)
                else:
                    redis.server.process.kill()
                    redis.server.process.wait()
                    time.sleep(OUTAGE[1] - (time.monotonic() - began))
                    redis.server.start()
                found[how] = {driver.peer.title: self.phases(driver.hear()) for driver in drivers}
                for driver in drivers:
                    driver.close()
            self.progress.say(f"Redis {how}", last=True)
        return found

    def phases(self, result):
        """By when a call was made."""
        bounds = list(itertools.accumulate((0, *OUTAGE)))
        found = {}
        for number, phase in enumerate(("before", "during", "after")):
            calls = [call for call in result["calls"] if bounds[number] <= call[0] / 1000 < bounds[number + 1]]
            found[phase] = {answer: sum(call[2] == answer for call in calls) for answer in "adfp"}
            found[phase]["longest"] = max((call[1] for call in calls), default=0)
        back = bounds[2] * 1000
        found["allowed again"] = min((start + took - back for start, took, answer in result["calls"]
                                      if answer == "a" and start >= back), default=None)
        return found


class Store:
    """A server that gale has prepared, as its users do, and that ends with the block."""

    def __init__(self, setting, server, address, url):
        self.server = server
        self.address = address
        subprocess.run([os.path.join(setting.build, "tools/gale"), "store", "init", url], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stop()
