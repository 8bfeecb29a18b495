#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""layering.py ROOT -- every #include follows the arrows between the folders."""
import pathlib
import re
import sys

PURE = "stdbool.h stddef.h stdint.h stdalign.h limits.h string.h inttypes.h assert.h".split()
PUBLIC = ["gale/gale.h", "gale/guard.h", "gale/rule.h", "gale/strategy.h", "gale/tenants.h", "gale/errors.h", "gale/export.h", "gale/http.h", "gale/policy.h", "gale/all.h", "gale/hold.h"]
# A seat in a loop of another library is a header that includes that one.
LOOPS = {"uv.h": ["uv.h"], "ev.h": ["ev.h"], "event.h": ["event2/event.h", "event2/event_struct.h"],
         "uring.h": ["errno.h", "liburing.h", "poll.h", "time.h"]}

# Folder: what it may include of ours, and of the system (None: anything).
MAY = {
    "include": (PUBLIC, ["stdint.h", "stddef.h", "stdbool.h"]),
    "engine": (["engine/", "gale/rule.h", "gale/strategy.h", "gale/errors.h", "gale/export.h"], PURE),
    "runtime": (["engine/", "runtime/", "gale/"], None),
    "stores": (["engine/", "runtime/", "stores/", "gale/"], None),
    "shards": (["engine/", "runtime/", "shards/", "stores/store.h", "gale/"], None),
    "coordinator": (["engine/", "runtime/", "coordinator/", "stores/store.h", "gale/"], None),
    "face": (["engine/", "runtime/", "stores/", "shards/", "coordinator/", "face/", "gale/"], None),
    # A library of its own, over what users have.
    "policy": (["policy/", "gale/"], None),
    # A fleet in virtual time looks behind all doors, and nobody in the house knows of it.
    "sim": (["engine/", "runtime/", "stores/", "shards/", "coordinator/", "face/", "sim/", "gale/"], None),
    # The command installs what a server needs, where nobody else may, and runs the simulator.
    "tools": (["tools/", "sim/", "gale/", "stores/url.h", "stores/stream.h", "stores/redis/url.h", "stores/redis/script.h",
               "stores/postgres/schema.h"], None),
    "examples": (["gale/", "examples/balancer/", "examples/httpd/", "examples/server/"], None),
}
# These look behind the doors: anything of the rooms, and themselves.
for folder in ("tests", "bench", "spec"):
    MAY[folder] = (MAY["sim"][0] + ["policy/", "tools/", "tests/support/", folder + "/"], None)
MAY["tests"][0].append("examples/balancer/")  # a part of it is tested on a clock of the test

INCLUDE = re.compile(r"""^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]""", re.M)
OURS = tuple(folder + "/" for folder in MAY) + ("gale/",)


def allowed(name, own, system):
    if name.startswith(OURS):
        return any(name == o or o.endswith("/") and name.startswith(o) for o in own)
    return system is None or name in system


def faults(root, folder, path):
    own, system = MAY[folder]
    if folder == "include":
        system = system + LOOPS.get(path.name, [])
    text = path.read_text()
    for match in INCLUDE.finditer(text):
        kind, name = match.groups()
        line = text.count("\n", 0, match.start()) + 1
        where = f"{path.relative_to(root)}:{line}"
        if kind == '"' and not name.startswith(OURS):
            yield f'{where}: write the path from the root, not "{name}"'
        elif name.startswith("gale/") and kind == '"':
            yield f"{where}: public headers are included as <{name}>"
        elif not allowed(name, own, system):
            yield f"{where}: {folder}/ may not include {name}"


def main():
    root = pathlib.Path(sys.argv[1])
    seen = 0
    bad = []
    for folder in MAY:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".c", ".h", ".cc"):
                seen += 1
                bad += faults(root, folder, path)
    print("\n".join(bad + [f"{seen} files, {len(bad)} faults"]))
    return 1 if bad or seen == 0 else 0


sys.exit(main())
