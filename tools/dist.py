#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""dist.py FOLDER -- writes gale-VERSION.tar.gz into FOLDER, and beside it gale-VERSION.spdx.json.

The archive has what is committed, and is the same, bit for bit, wherever it is made of one commit with
the same git and zlib: git sorts the files, gives them the commit's time, and root as the owner.
The SBOM is SPDX 2.3: the archive, each file in it, and the Debian packages that packages.txt lists for
building and running gale, in the versions of this machine.
"""
import datetime
import gzip
import hashlib
import io
import json
import pathlib
import re
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Groups of packages.txt, and whether gale can be built without.
GROUPS = {"library": False, "redis": True, "tls": True, "postgres": True, "policy": True}


def said(*command):
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout


def version_of_head():
    return re.search(r"^  version: '(.*?)'", said("git", "show", "HEAD:meson.build").decode(), re.M)[1]


def time_of_head():
    seconds = int(said("git", "log", "-1", "--format=%ct", "HEAD"))
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)


def archive(name):
    tar = said("git", "-c", "tar.umask=0022", "archive", "--format=tar", f"--prefix={name}/", "HEAD")
    # A time in it, or a name, would be that of its making.
    return tar, gzip.compress(tar, mtime=0)


# ---- The SBOM ------------------------------------------------------------------------

def contents(tar):
    """(path below the top folder, bytes) of each file; a link has its target as bytes."""
    with tarfile.open(fileobj=io.BytesIO(tar)) as opened:
        for member in opened:
            path = member.name.partition("/")[2]
            if member.issym():
                yield path, member.linkname.encode()
            elif member.isfile():
                yield path, opened.extractfile(member).read()


def file_of(path, data):
    names = re.search(rb"SPDX-License-Identifier: (\S+)", data)
    return {
        "SPDXID": "SPDXRef-File-" + hashlib.sha1(path.encode()).hexdigest(),
        "fileName": "./" + path,
        "checksums": [{"algorithm": "SHA1", "checksumValue": hashlib.sha1(data).hexdigest()},
                      {"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()}],
        "licenseConcluded": "MIT",
        "licenseInfoInFiles": [names[1].decode() if names else "NONE"],
        "copyrightText": "the gale authors" if names else "NONE",
    }


def verification_code(files):
    """As SPDX 2.3, 7.9, has it: of the SHA1 of all files, sorted."""
    sums = sorted(file["checksums"][0]["checksumValue"] for file in files)
    return hashlib.sha1("".join(sums).encode()).hexdigest()


def version_of(package):
    shown = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", package],
                           stdout=subprocess.PIPE, text=True).stdout.split()
    if shown[:1] != ["installed"]:
        sys.exit(f"dist.py: the SBOM has the version of {package}, and it is not installed: apt-get install {package}")
    return shown[1]


def dependencies():
    """(package, its group) of packages.txt."""
    group = None
    for line in said("git", "show", "HEAD:packages.txt").decode().splitlines():
        line = line.partition("#")[0].strip()
        if line.startswith("["):
            group = line[1:-1]
        elif line and group in GROUPS:
            yield line, group


def dependency_of(package):
    version = version_of(package)
    return {
        "SPDXID": "SPDXRef-Package-" + package.replace("+", "-"),
        "name": package,
        "versionInfo": version,
        "supplier": "Organization: Debian",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": f"pkg:deb/debian/{package}@{version.replace(':', '%3A').replace('+', '%2B')}"}],
    }


def relationship_of(package, group):
    if not (package.startswith("lib") and package.endswith("-dev")):
        kind = "BUILD_TOOL_OF"
    else:
        kind = "OPTIONAL_DEPENDENCY_OF" if GROUPS[group] else "DEPENDENCY_OF"
    return {"spdxElementId": dependency_of(package)["SPDXID"], "relationshipType": kind,
            "relatedSpdxElement": "SPDXRef-gale"}


def sbom(name, tar, packed):
    files = [file_of(path, data) for path, data in contents(tar)]
    needed = list(dependencies())
    digest = hashlib.sha256(packed).hexdigest()
    gale = {
        "SPDXID": "SPDXRef-gale",
        "name": "gale",
        "versionInfo": version_of_head(),
        "packageFileName": f"{name}.tar.gz",
        "supplier": "Organization: the gale authors",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": True,
        "packageVerificationCode": {"packageVerificationCodeValue": verification_code(files)},
        "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
        "licenseConcluded": "MIT",
        "licenseDeclared": "MIT",
        "licenseInfoFromFiles": sorted({file["licenseInfoInFiles"][0] for file in files}),
        "copyrightText": "Copyright (c) the gale authors",
        "hasFiles": [file["SPDXID"] for file in files],
    }
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": name,
        "documentNamespace": f"https://gale.example.org/spdx/{name}-{digest}",
        "creationInfo": {"created": time_of_head().strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": ["Organization: the gale authors", "Tool: tools/dist.py"]},
        "documentDescribes": ["SPDXRef-gale"],
        "packages": [gale] + [dependency_of(package) for package, _ in needed],
        "files": files,
        "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                           "relatedSpdxElement": "SPDXRef-gale"}]
                         + [relationship_of(package, group) for package, group in needed],
    }


def main():
    folder = pathlib.Path(sys.argv[1])
    name = "gale-" + version_of_head()
    if said("git", "status", "--porcelain", "--untracked-files=no"):
        print("== dist: what is not committed is not in it", file=sys.stderr)
    tar, packed = archive(name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.tar.gz").write_bytes(packed)
    text = json.dumps(sbom(name, tar, packed), indent=1, sort_keys=True)
    (folder / f"{name}.spdx.json").write_text(text + "\n")
    print(folder / f"{name}.tar.gz")
    print(folder / f"{name}.spdx.json")


main()
