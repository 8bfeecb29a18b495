#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""man-page.py GALE PAGE.in OUT -- a man page of a command, made of its --help and of what PAGE.in adds.

Of PAGE.in, three kinds of lines are replaced, and the others are roff as they are:

    @HELP check@    SYNOPSIS, DESCRIPTION, OPTIONS and EXIT STATUS, of gale check --help
    @PART watch@    the same as one section, for a page of several commands
    .EX ... .EE     between them a line is literal, so that it reads as it is typed
"""
import re
import subprocess
import sys

from roff import literal, page_of

TABLE = re.compile(r"( *)(\S+(?: \S+)*)(?: {2,}(\S.*))?")  # a term, and what it means
DEEP = re.compile(r" {6,}(\S.*)")                         # which goes on in the next line
TERM_MOST = 22


def pieces(text):
    """Of a help: ("usage" | "paragraph", words) and ("item", term, words)."""
    found, goes_on = [], False
    lines = text.splitlines()
    for line, after in zip(lines, lines[1:] + [""]):
        is_usage = line.startswith(("usage: ", "       gale "))
        if not line:
            goes_on = False
            continue
        if is_usage:
            found.append(["usage", line.removeprefix("usage:").strip()])
        elif found and found[-1][0] == "item" and goes_on and (deep := DEEP.fullmatch(line)):
            found[-1][2] = (found[-1][2] + " " + deep[1]).strip()
        elif is_item(line, after):
            _, term, words = TABLE.fullmatch(line).groups()
            found.append(["item", term, words or ""])
        elif found and found[-1][0] == "paragraph" and goes_on:
            found[-1][1] += " " + line.strip()
        else:
            found.append(["paragraph", line.strip()])
        goes_on = True
    return found


def is_item(line, after):
    """A term stands in a column of its own, or alone above its words; between sentences are two spaces, too."""
    if not (row := TABLE.fullmatch(line)):
        return False
    indent, term, words = row.groups()
    if indent:
        return True
    if words is None:
        return bool(DEEP.fullmatch(after))
    return len(term) <= TERM_MOST and term[-1] not in ".:,;)"


def roff(found):
    lines = []
    for piece in found:
        if piece[0] == "usage":
            lines += [literal(piece[1])]
        elif piece[0] == "paragraph":
            lines += [".PP", literal(piece[1])]
        else:
            lines += [".TP", f"\\fB{literal(piece[1])}\\fR", literal(piece[2]) or "\\&"]
    return lines


def sections(text):
    """(heading, lines of roff) of a help."""
    found = pieces(text)
    status = [piece for piece in found if piece[1].startswith("Exit status: ")]
    options = [piece for piece in found if piece[0] == "item" and piece[1].startswith("--")]
    usage = [piece for piece in found if piece[0] == "usage"]
    rest = [piece for piece in found if piece not in status + options + usage]
    yield "SYNOPSIS", [".nf", *roff(usage), ".fi"]
    for heading, some in (("DESCRIPTION", rest), ("OPTIONS", options), ("EXIT STATUS", status)):
        if some:
            yield heading, roff([[kind, more[0].removeprefix("Exit status: "), *more[1:]] for kind, *more in some])


def main():
    gale, page, out = sys.argv[1:]

    def said(*words):
        return subprocess.run([gale, *words], capture_output=True, text=True, check=True).stdout

    lines, is_example = [], False
    for line in open(page, encoding="utf-8").read().splitlines():
        if asked := re.fullmatch(r"@(HELP|PART)(.*)@", line):
            kind, words = asked[1], asked[2].split()
            if kind == "PART":
                lines.append(f'.SH "{literal(" ".join(["gale", *words]).upper())}"')
            for heading, some in sections(said(*words, "--help")):
                name = f'.SS "{heading.capitalize()}"' if kind == "PART" else f'.SH "{heading}"'
                lines += [name, *some]
        elif line in (".EX", ".EE"):
            is_example = line == ".EX"
            lines += [".PP", ".RS 4", ".nf"] if is_example else [".fi", ".RE"]
        elif is_example:
            lines.append(literal(line))
        else:
            lines.append(line.replace("@VERSION@", said("version").strip()))
    with open(out, "w", encoding="utf-8") as file:
        file.write(page_of(lines))


main()
