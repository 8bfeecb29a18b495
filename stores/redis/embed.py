#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""embed.py SCRIPT.. NAME OUT [--clock-of-tests] -- Lua scripts, one behind the other, as C, with
their SHA-1.

Comments and indentation stay here.  With --clock-of-tests the one line that reads the
server's clock takes the nonce for the time instead.
"""
import hashlib
import re
import sys

CLOCK = re.compile(r"^local clock = call\('TIME'\)$", re.M)
TEMPLATE = """/* Made by embed.py from {source}. */
#include "stores/redis/script.h"

static const char text[] = {{
{numbers}
}};

const struct redis_script {name} = {{
	.text = text,
	.count = sizeof(text),
	.sha1 = "{sha1}",
}};
"""


def stripped(text):
    lines = (re.sub(r"\s*--.*$", "", line).strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line) + "\n"


def numbers(text):
    codes = [f"{ord(letter)}," for letter in text]
    return "\n".join("\t" + " ".join(codes[i:i + 16]) for i in range(0, len(codes), 16))


def main():
    words = [word for word in sys.argv[1:] if word != "--clock-of-tests"]
    *sources, name, out = words
    text = ""
    for source in sources:
        with open(source, encoding="ascii") as file:
            text += stripped(file.read())
    if len(CLOCK.findall(text)) != 1:
        sys.exit("the script must read the clock once")
    if "--clock-of-tests" in sys.argv:
        text = CLOCK.sub("local clock = { 0, ARGV[1] }", text)
    with open(out, "w", encoding="ascii") as file:
        file.write(TEMPLATE.format(
            source=source.rsplit("/", 1)[-1], name=name, numbers=numbers(text),
            sha1=hashlib.sha1(text.encode()).hexdigest()))


main()
