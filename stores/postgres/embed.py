#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""embed.py SQL C -- the schema as an array of C that ends in a 0, and its version as a number.

Not as a string: a compiler need not take one of more than 4095 characters.
"""
import pathlib
import re
import sys

VERSION = re.compile(rb"^\tours CONSTANT int := (\d+);", re.M)


def main():
    text = pathlib.Path(sys.argv[1]).read_bytes()
    [version] = VERSION.findall(text)
    text += b"\0"
    lines = [", ".join(map(str, text[i:i + 20])) for i in range(0, len(text), 20)]
    pathlib.Path(sys.argv[2]).write_text(
        '#include "stores/postgres/schema.h"\n\n'
        f"const int postgres_schema_version = {int(version)};\n\n"
        "const char postgres_schema[] = {\n\t"
        + ",\n\t".join(lines) + "\n};\n")


main()
