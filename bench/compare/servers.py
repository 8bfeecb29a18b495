# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""servers.py -- servers of the comparison's own, on free ports of this machine, in a folder that is gone afterwards.

None is the machine's own service, and none outlives the comparison: each is told to die with its parent.
"""
import ctypes
import glob
import os
import shutil
import signal
import socket
import subprocess
import time

DIE_WITH_PARENT = 1  # prctl's PR_SET_PDEATHSIG
POSTGRES_TIME = 30


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def die_with_parent():
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)


def wait_for_port(port, process, what, seconds=20):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            break
        time.sleep(0.01)
    raise RuntimeError(f"{what} does not start; see its log")


def processes_of(pid):
    """A process and all that it has started."""
    found = [pid]
    for children in glob.glob(f"/proc/{pid}/task/*/children"):
        with open(children) as text:
            for child in text.read().split():
                found += processes_of(int(child))
    return found


class Server:
    """A process with a port.  A subclass sets command, and what."""

    def __init__(self, scratch, what, user=None):
        self.what = what
        self.user = user
        self.folder = os.path.join(scratch, f"{what}-{free_port()}")
        os.makedirs(self.folder)
        self.port = free_port()
        self.process = None

    def start(self):
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            preexec_fn=die_with_parent, user=self.user, cwd=self.folder)
        wait_for_port(self.port, self.process, self.what)
        return self

    def stop(self, with_signal=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(with_signal)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def processor_ns(self):
        """What all its processes and threads have had of the processors, those that have ended with them."""
        with open(f"/proc/{self.process.pid}/stat") as text:
            ended = text.read().rpartition(")")[2].split()[13:15]  # cutime, cstime
        total = sum(map(int, ended)) * 1000000000 // os.sysconf("SC_CLK_TCK")
        for pid in processes_of(self.process.pid):
            for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
                try:
                    with open(path) as text:
                        total += int(text.read().split()[0])
                except OSError:
                    pass  # a thread that has just ended
        return total

    def resident_bytes(self):
        total = 0
        for pid in processes_of(self.process.pid):
            with open(f"/proc/{pid}/statm") as text:
                total += int(text.read().split()[1]) * os.sysconf("SC_PAGESIZE")
        return total


# ---- Stores ------------------------------------------------------------------------------------------


class Redis(Server):
    def __init__(self, scratch):
        super().__init__(scratch, "redis")

    def command(self):
        return ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                "--dir", self.folder]

    def used_bytes(self):
        return int(self.ask("INFO memory").split("used_memory:")[1].split()[0])

    def ask(self, command):
        with socket.create_connection(("127.0.0.1", self.port)) as sock:
            sock.sendall(command.encode() + b"\r\n")
            return sock.recv(65536).decode()


def postgres_programs():
    """The folder of the newest version that is installed; None."""
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"), key=lambda path: int(path.split("/")[4]))
    return os.path.dirname(folders[-1]) if folders else None


class Postgres(Server):
    """Syncs nothing: each commit would wait for this machine's disk, whichever peer asks."""

    def __init__(self, scratch):
        super().__init__(scratch, "postgres", user="postgres" if os.getuid() == 0 else None)
        if self.user:
            os.chmod(scratch, 0o755)
            shutil.chown(self.folder, self.user)
        self.data = os.path.join(self.folder, "data")
        subprocess.run([f"{postgres_programs()}/initdb", "--no-sync", "-A", "trust", "-U", "gale", "-D", self.data],
                       check=True, stdout=subprocess.DEVNULL, user=self.user, cwd=self.folder, timeout=120)
        self.url = f"postgres://gale@127.0.0.1:{self.port}/postgres"

    def command(self):
        return [f"{postgres_programs()}/postgres", "-D", self.data, "-p", str(self.port), "-k", self.folder,
                "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "autovacuum_naptime=10s"]

    def start(self):
        super().start()
        until = time.monotonic() + POSTGRES_TIME
        while self.sql("SELECT 1", check=False) != "1":
            if time.monotonic() > until:
                raise RuntimeError("postgres does not answer; see its log")
            time.sleep(0.05)
        return self

    def sql(self, statement, check=True):
        said = subprocess.run([f"{postgres_programs()}/psql", "-qAtc", statement, self.url], capture_output=True,
                              text=True, check=check)
        return said.stdout.strip()

    def used_bytes(self):
        return int(self.sql("SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON "
                            "n.oid = relnamespace WHERE relkind IN ('r', 'p') AND nspname IN ('gale', 'public')"))

    def stop(self, with_signal=signal.SIGINT):
        super().stop(with_signal)


# ---- HTTP servers ------------------------------------------------------------------------------------

NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log crit;
events {{ worker_connections 2048; }}
http {{
    access_log off; keepalive_requests 1000000000; keepalive_timeout 3600s;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    {zone}
    upstream backend {{ server 127.0.0.1:{backend}; keepalive 256; keepalive_requests 1000000000; }}
    server {{
        listen 127.0.0.1:{port} backlog=512;
        location / {{ {limit} {content} }}
    }}
}}
"""

HAPROXY = """
global
    maxconn 4000
    nbthread 1
defaults
    mode http
    timeout client 1h
    timeout server 1h
    timeout connect 10s
    timeout queue 30s
{table}
frontend in
    bind 127.0.0.1:{port}
    {limit}
    {content}
{backend}
"""


class Nginx(Server):
    """limit: "", or of limit_req or limit_conn.  With a backend's port it is a proxy."""

    def __init__(self, scratch, zone="", limit="", backend=None):
        super().__init__(scratch, "nginx")
        content = "proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection '';"
        with open(os.path.join(self.folder, "conf"), "w") as conf:
            conf.write(NGINX.format(folder=self.folder, port=self.port, zone=zone, limit=limit, backend=backend or 1,
                                    content=content if backend else "empty_gif;"))

    def command(self):
        return ["nginx", "-p", self.folder, "-c", os.path.join(self.folder, "conf")]


class Haproxy(Server):
    """table and limit: lines of a stick table, and of what it denies.  With a backend it is a proxy with maxconn."""

    def __init__(self, scratch, table="", limit="", backend=None, ceiling=0):
        super().__init__(scratch, "haproxy")
        behind = ""
        if backend:
            behind = f"backend behind\n    server one 127.0.0.1:{backend} maxconn {ceiling}\n"
        with open(os.path.join(self.folder, "conf"), "w") as conf:
            conf.write(HAPROXY.format(port=self.port, table=table, limit=limit, backend=behind, content=(
                "default_backend behind" if backend else "http-request return status 200")))

    def command(self):
        return ["haproxy", "-db", "-f", os.path.join(self.folder, "conf")]


class GaleServer(Server):
    """examples/httpd with that limit a day for each key, 0: none."""

    def __init__(self, scratch, build, limit):
        super().__init__(scratch, "httpd")
        self.arguments = [os.path.join(build, "examples/httpd"), "--port", str(self.port), "--threads", "1", "--limit",
                          f"{limit}/d", "--clients", "1048576"]

    def command(self):
        return self.arguments


class Backend:
    """peers/backend.c."""

    def __init__(self, build, hold_ms, ceiling):
        self.process = subprocess.Popen([os.path.join(build, "bench/compare/compare_backend"), str(hold_ms), str(ceiling)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                                        preexec_fn=die_with_parent)
        self.port = int(self.process.stdout.readline())

    def counts(self):
        self.process.stdin.write("\n")
        return {name: float(value) for name, value in (word.split("=") for word in self.process.stdout.readline().split())}

    def stop(self):
        self.process.stdin.close()
        self.process.wait(20)
