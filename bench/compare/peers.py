# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""peers.py -- the peers, what each needs to be here, and how its driver is started.

All drivers speak the line protocol of peers/driver.h.
"""
import glob
import json
import os
import select
import shutil
import subprocess

from servers import die_with_parent, postgres_programs

HERE = os.path.dirname(os.path.abspath(__file__))
JAVA = "/usr/share/java"
GO = "/usr/share/gocode"
ANSWER_SECONDS = 300


class Setting:
    """What the command was told, and where things are."""

    def __init__(self, build, modules, programs, scratch):
        self.build = build
        self.modules = modules
        self.programs = programs
        self.scratch = scratch
        self.draws = os.path.join(scratch, "draws")


def built(setting, name):
    return os.path.join(setting.build, "bench/compare", f"compare_{name}")


def package_version(package):
    said = subprocess.run(["dpkg-query", "-W", "-f=${Version}", package], capture_output=True, text=True)
    return said.stdout.split("-")[0].split("+")[0].split(":")[-1] if said.returncode == 0 else ""


def module_version(setting, name):
    with open(os.path.join(setting.modules, name, "package.json")) as text:
        return json.load(text)["version"]


# ---- What is here: None, or what is missing ----------------------------------------------------------


def lacks_nothing(_):
    return None


def lacks_built(name, package):
    def lacks(setting):
        return None if os.path.exists(built(setting, name)) else f"install {package}, and build again"
    return lacks


def lacks_redis(setting):
    return None if shutil.which("redis-server") else "install redis-server"


def lacks_postgres(setting):
    return None if postgres_programs() else "install postgresql"


def lacks_httpd(setting):
    is_built = os.path.exists(os.path.join(setting.build, "examples/httpd"))
    return None if is_built else "install libhttp-parser-dev and libyaml-dev, and build again"


def lacks_go(_):
    there = shutil.which("go") and os.path.isdir(f"{GO}/src/golang.org/x/time/rate")
    return None if there else "install golang-go and golang-golang-x-time-dev"


def lacks_java(_):
    there = shutil.which("java") and shutil.which("javac") and os.path.exists(f"{JAVA}/guava.jar")
    return None if there else "install libguava-java and openjdk-17-jdk-headless"


def lacks_module(*names):
    def lacks(setting):
        if not shutil.which("node"):
            return "install nodejs"
        missing = [name for name in names if not os.path.isdir(os.path.join(setting.modules, name))]
        folder = os.path.relpath(os.path.dirname(setting.modules))
        return f"npm install --prefix {folder} {' '.join(missing)}" if missing else None
    return lacks


def lacks_program(name, what):
    def lacks(setting):
        return None if name in setting.programs else what
    return lacks


def lacks_command(command, package):
    def lacks(_):
        return None if shutil.which(command) else f"install {package}"
    return lacks


def first_lack(*lacks):
    def all_of(setting):
        return next((why for why in (lack(setting) for lack in lacks) if why), None)
    return all_of


# ---- How a driver is started -------------------------------------------------------------------------


def in_c(name, variant="", prefix=""):
    def command(setting, address):
        return [built(setting, name), setting.draws, prefix + address if address else "", variant]
    return command


def in_go(setting, address):
    program = os.path.join(setting.scratch, "xtime")
    if not os.path.exists(program):
        environment = {**os.environ, "GO111MODULE": "off", "GOPATH": GO, "GOFLAGS": "",
                       "GOCACHE": os.path.join(setting.scratch, "go-cache")}
        subprocess.run(["go", "build", "-o", program, os.path.join(HERE, "peers/xtime.go")], check=True, env=environment)
    return [program, setting.draws]


def in_java(setting, address):
    classes = os.path.join(setting.scratch, "classes")
    path = ":".join([f"{JAVA}/guava.jar", *glob.glob(f"{JAVA}/failureaccess.jar"), classes])
    if not os.path.isdir(classes):
        subprocess.run(["javac", "-nowarn", "-d", classes, "-cp", path, os.path.join(HERE, "peers/Guava.java")],
                       check=True, stderr=subprocess.DEVNULL)
    return ["java", "-cp", path, "Guava", setting.draws]


def in_node(name):
    def command(setting, address):
        return ["node", "--expose-gc", os.path.join(HERE, "peers", name), setting.draws, address]
    return command


def by_program(name):
    def command(setting, address):
        return [setting.programs[name], setting.draws]
    return command


class Peer:
    """name: as in --peers; title: as in the report."""

    def __init__(self, name, title, lacks, command=None, version=lambda setting: "", is_gale=False):
        self.name = name
        self.title = title
        self.lacks = lacks
        self.command = command
        self.version = version
        self.is_gale = is_gale

    def open(self, setting, address=""):
        return Driver(self, self.command(setting, address), setting)


class Driver:
    """A driver that runs.  Its remarks go to where the comparison's own errors go."""

    def __init__(self, peer, command, setting):
        self.peer = peer
        environment = {**os.environ, "NODE_PATH": setting.modules}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                                        env=environment, preexec_fn=die_with_parent)

    def send(self, **words):
        self.process.stdin.write(" ".join(f"{name}={value}" for name, value in words.items()) + "\n")

    def hear(self):
        """A dictionary of numbers; or of "cannot", a text; or of "calls"."""
        # There is never more than one line on its way, so none is in a buffer of ours.
        if not select.select([self.process.stdout], [], [], ANSWER_SECONDS)[0]:
            raise RuntimeError(f"the driver of {self.peer.title} does not answer for {ANSWER_SECONDS} s")
        line = self.process.stdout.readline().strip()
        if not line:
            raise RuntimeError(f"the driver of {self.peer.title} has ended")
        if line.startswith("cannot="):
            return {"cannot": line.removeprefix("cannot=")}
        if line.startswith("call="):
            calls = (word.removeprefix("call=").split(":") for word in line.split())
            return {"calls": [(float(start), float(took), answer) for start, took, answer in calls]}
        return {name: float(value) for name, value in (word.split("=") for word in line.split())}

    def do(self, **words):
        self.send(**words)
        return self.hear()

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def debian(package):
    return lambda setting: package_version(package)


def node(name):
    return lambda setting: module_version(setting, name)


GOVERNOR = "build peers/governor.rs with the crate governor, and say --program governor=PATH"
FLEXIBLE = dict(command=in_node("flexible.js"), version=node("rate-limiter-flexible"))
BOTTLENECK = dict(command=in_node("bottleneck.js"), version=node("bottleneck"))

# The two that others are held to are first.
PROCESS = [
    Peer("gale", "gale, leased", lacks_nothing, in_c("gale", "leased"), is_gale=True),
    Peer("gale-strict", "gale, strict", lacks_nothing, in_c("gale", "strict"), is_gale=True),
    Peer("xtime", "Go x/time/rate", lacks_go, in_go, debian("golang-golang-x-time-dev")),
    Peer("guava", "Guava RateLimiter", lacks_java, in_java, debian("libguava-java")),
    Peer("governor", "governor", lacks_program("governor", GOVERNOR), by_program("governor")),
    Peer("flexible", "rate-limiter-flexible", lacks_module("rate-limiter-flexible"), **FLEXIBLE),
    Peer("bottleneck", "bottleneck", lacks_module("bottleneck"), **BOTTLENECK),
]

REDIS = [
    Peer("gale", "gale, leased", first_lack(lacks_redis, lacks_built("hiredis", "libhiredis-dev")),
         in_c("gale", "leased", "redis://"), is_gale=True),
    Peer("gale-strict", "gale, strict", first_lack(lacks_redis, lacks_built("hiredis", "libhiredis-dev")),
         in_c("gale", "strict", "redis://"), is_gale=True),
    Peer("hiredis", "bare hiredis, a script", first_lack(lacks_redis, lacks_built("hiredis", "libhiredis-dev")),
         in_c("hiredis"), debian("libhiredis-dev")),
    Peer("flexible", "rate-limiter-flexible", first_lack(lacks_redis, lacks_module("rate-limiter-flexible", "ioredis")),
         **FLEXIBLE),
    Peer("bottleneck", "bottleneck", first_lack(lacks_redis, lacks_module("bottleneck", "ioredis")), **BOTTLENECK),
]

POSTGRES = [
    Peer("gale", "gale, leased", first_lack(lacks_postgres, lacks_built("libpq", "libpq-dev")), in_c("gale", "leased"),
         is_gale=True),
    Peer("gale-strict", "gale, strict", first_lack(lacks_postgres, lacks_built("libpq", "libpq-dev")),
         in_c("gale", "strict"), is_gale=True),
    Peer("libpq", "bare libpq, an upsert", first_lack(lacks_postgres, lacks_built("libpq", "libpq-dev")), in_c("libpq"),
         debian("libpq-dev")),
]

POLLS = "gale, strict, poll_us 100"
# Call by call, also where gale's threads poll before they sleep.
REDIS_CALLS = [*REDIS[:2], Peer("gale-polls", POLLS, REDIS[1].lacks, in_c("gale", "strict+polls", "redis://"), is_gale=True),
               *REDIS[2:]]
POSTGRES_CALLS = [*POSTGRES[:2], Peer("gale-polls", POLLS, POSTGRES[1].lacks, in_c("gale", "strict+polls"), is_gale=True),
                  *POSTGRES[2:]]

# What clients see when Redis stops: also those that behave otherwise on demand.
OUTAGE = [
    *REDIS[:2],
    Peer("gale-allow", "gale, strict, on_outage allow", REDIS[1].lacks, in_c("gale", "strict+allow", "redis://"),
         is_gale=True),
    Peer("gale-leased-allow", "gale, leased, on_outage allow", REDIS[1].lacks, in_c("gale", "leased+allow", "redis://"),
         is_gale=True),
    Peer("hiredis", "bare hiredis, a timeout of 100 ms", REDIS[2].lacks, in_c("hiredis")),
    Peer("hiredis-patient", "bare hiredis, no timeout", REDIS[2].lacks, in_c("hiredis", "patient")),
    *REDIS[3:],
]

GUARD = [
    Peer("gale", "gale, a guard of a fleet", REDIS[0].lacks, in_c("gale", "guard", "redis://"), is_gale=True),
    Peer("semaphore", "redis-semaphore", first_lack(lacks_redis, lacks_module("redis-semaphore", "ioredis")),
         in_node("semaphore.js"), node("redis-semaphore")),
    Peer("bottleneck", "bottleneck, maxConcurrent", REDIS[4].lacks, **BOTTLENECK),
]

# Servers, which http.c asks.
NGINX = Peer("nginx", "nginx", lacks_command("nginx", "nginx"), in_c("http"), debian("nginx"))
HAPROXY = Peer("haproxy", "HAProxy", lacks_command("haproxy", "haproxy"), in_c("http"), debian("haproxy"))
HTTP_SERVER = Peer("gale", "gale's examples/httpd", lacks_httpd, in_c("http"), is_gale=True)


def all_names():
    peers = [*PROCESS, *REDIS_CALLS, *POSTGRES_CALLS, *OUTAGE, *GUARD, NGINX, HAPROXY]
    return list(dict.fromkeys(peer.name for peer in peers))
