#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""dist_test.py WORK -- what make dist writes: the tarball is the same for whoever makes it, the library
builds from it, and the SBOM says what is in it and what it needs.
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEEDED = {"libhiredis-dev", "libpq-dev", "libssl-dev", "libyaml-dev", "libxxhash-dev", "libjemalloc-dev", "libc6-dev", "meson"}
faults = []


def expect(true, *words):
    if not true:
        faults.append(" ".join(map(str, words)))


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, **options)
    if done.returncode:
        sys.exit(f"FAIL: {' '.join(map(str, command))}: {done.stdout[-4000:]}")
    return done.stdout


def made_elsewhere(work):
    """By another user, so to speak: a clone with a file that is not committed, another mask, zone, language and time."""
    clone = work / "clone"
    run("git", "clone", "-q", "--no-hardlinks", ROOT, clone)
    (clone / "README.md").write_text("not committed\n")
    run("git", "-C", clone, "config", "tar.umask", "0077")
    around = dict(os.environ, TZ="Asia/Tokyo", LC_ALL="C", GZIP="-1")
    run(clone / "tools/dist.py", work / "again", env=around, umask=0o077)
    return work / "again"


def has_one_owner_and_time(path):
    with tarfile.open(path) as tar:
        members = tar.getmembers()
    expect(len({member.mtime for member in members}) == 1, "files have different times")
    expect({(member.uid, member.gid) for member in members} == {(0, 0)}, "files have owners")
    names = [member.name for member in members]
    expect(len(names) == len(set(names)), "a name comes twice")


def builds(work, path, name):
    with tarfile.open(path) as tar:
        tar.extractall(work)
    run("meson", "setup", work / "build", work / name, "-Dtests=false", "-Dtools=false", "-Doptimization=0",
        "-Ddefault_library=shared", "-Dc_args=-g0")
    run("ninja", "-C", work / "build")
    return work / name


def fits(sbom, tarball, tree):
    """The SBOM, and the files as they are unpacked."""
    document = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": tree.name}
    for field, value in document.items():
        expect(sbom.get(field) == value, f"{field} is {sbom.get(field)}")
    expect(re.fullmatch(r"https://\S+", sbom["documentNamespace"]), "documentNamespace is no URI")
    expect(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", sbom["creationInfo"]["created"]), "created is no time")
    expect(all(re.match("(Tool|Organization): ", who) for who in sbom["creationInfo"]["creators"]), "creators are of no kind")

    digest = hashlib.sha256(tarball.read_bytes()).hexdigest()
    gale = sbom["packages"][0]
    expect(gale["checksums"] == [{"algorithm": "SHA256", "checksumValue": digest}], "it is of another tarball")
    expect(f"gale-{gale['versionInfo']}.tar.gz" == tarball.name == gale["packageFileName"], "the tarball has another name")

    files = {"./" + str(path.relative_to(tree)): hashlib.sha1(path.read_bytes()).hexdigest()
             for path in tree.rglob("*") if path.is_file()}
    told = {file["fileName"]: {sum["algorithm"]: sum["checksumValue"] for sum in file["checksums"]} for file in sbom["files"]}
    expect({name: sums["SHA1"] for name, sums in told.items()} == files, "it lists other files")
    code = hashlib.sha1("".join(sorted(files.values())).encode()).hexdigest()
    expect(gale["packageVerificationCode"]["packageVerificationCodeValue"] == code, "the verification code is another")


def names_what_is_needed(sbom):
    needed = {package["name"]: package["versionInfo"] for package in sbom["packages"][1:]}
    expect(not NEEDED - set(needed), "it lacks", NEEDED - set(needed))
    for name, version in needed.items():
        here = run("dpkg-query", "-W", "-f", "${Version}", name)
        expect(version == here, f"{name} is {here}, and not {version}")
    ids = [part["SPDXID"] for part in sbom["packages"] + sbom["files"]]
    expect(len(ids) == len(set(ids)) and all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", id) for id in ids), "identifiers are not good")
    related = {relation["spdxElementId"] for relation in sbom["relationships"]}
    expect(related == {"SPDXRef-DOCUMENT"} | {package["SPDXID"] for package in sbom["packages"][1:]}, "relationships lack packages")


def main():
    work = pathlib.Path(sys.argv[1]).resolve()
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    run(ROOT / "tools/dist.py", work / "once")
    [tarball] = (work / "once").glob("gale-*.tar.gz")
    [beside] = (work / "once").glob("gale-*.spdx.json")
    again = made_elsewhere(work)
    for path in (tarball, beside):
        expect(path.read_bytes() == (again / path.name).read_bytes(), f"{path.name} is another when it is made again")
    has_one_owner_and_time(tarball)
    tree = builds(work, tarball, tarball.name.removesuffix(".tar.gz"))
    sbom = json.loads(beside.read_text())
    fits(sbom, tarball, tree)
    names_what_is_needed(sbom)
    for fault in faults:
        print("FAIL:", fault)
    return 1 if faults else 0


sys.exit(main())
