#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""man-calls.py INCLUDE VERSION OUT PROGRAM.c... -- man pages of the library's calls, made of its headers.

Each PROGRAM.c is the example of one page, which has the program's name (uv.c: gale_uv_open).  That name is a
function, and the page is about all that the function's header, or its section of the header, declares: their
comments are the text.  The program's head says the rest:

    gale_ask.c -- what the functions are for, in a few words
    Errors   the errors that they return, without GALE_ERR_; their texts are those of errors.h
    Prints   what the program prints, in the lines that follow

OUT becomes a folder with the pages, and with a link to them for each other function.
"""
import itertools
import pathlib
import re
import shutil
import sys

from roff import literal, page_of

HEAD = "gale"  # the page of the library, which has the head of gale.h
NOT_FOR_USERS = re.compile(r"\n\t/\* New fields go here.*")
SECTION = re.compile(r"^/\* -{4} (.+?) -+ \*/$", re.M)
CALL = re.compile(r"\b(gale_\w*[^\W_])\(")


class Item:
    """Declarations that follow each other, and the comment before them."""

    def __init__(self, comment=""):
        self.comment, self.declarations = comment, []

    def calls(self):
        return [call for text in self.declarations if (call := name_of(text))]


def name_of(declaration):
    """Of a function its name, and of a type or macro nothing."""
    if re.match(r"#|(?:struct|enum) \w+ \{", declaration):
        return None
    found = CALL.search(declaration.split("{")[0])
    return found and found[1]


def prototype(declaration):
    text = declaration.split("\n{")[0].expandtabs(8)
    if mark := re.match(r"(?:GALE_API|static inline) ", text):
        text = text[mark.end():].replace("\n" + " " * mark.end(), "\n")
    return text if ";" in text else text + ";"


def pared(text):
    """A header without what only a compiler reads."""
    text = re.sub(r"^#ifdef __cplusplus\n.*?^#endif\n", "", text, flags=re.S | re.M)
    text = re.sub(r"^#(if|endif|include|else|undef).*\n", "", text, flags=re.M)
    return re.sub(r"^#define GALE_(\w+_)?H\n", "\n", text, flags=re.M)


def is_whole(text):
    """Has a declaration, a macro or a comment come to its end?"""
    if text.startswith("/*"):
        return text.endswith("*/")
    if text.startswith("#"):
        return not text.endswith("\\")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S).rstrip()
    return text.count("{") == text.count("}") and text.endswith((";", "}"))


def tokens_of(text):
    """Its declarations, macros and comments, and "" where a blank line ends a group of them."""
    token = ""
    for line in text.splitlines():
        token += ("\n" if token else "") + line
        if not token or is_whole(token):
            yield token
            token = ""


def is_of_the_library(token):
    """What ends in _ is no user's."""
    return re.match(r"static inline [^{]*?\bgale_\w+_\(|enum gale_\w+_ ", token)


def is_opaque(token):
    return re.match(r"(struct|enum) \w+;$", token)


def items_of(text):
    items, goes_on = [], False
    for token in tokens_of(text):
        if not token:
            goes_on = False
        elif token.startswith("/*"):
            items.append(Item(token))
            goes_on = True
        elif is_of_the_library(token):
            if goes_on and not items[-1].declarations:
                items.pop()
            goes_on = False
        elif not is_opaque(token):
            if not goes_on:
                items.append(Item())
                goes_on = True
            items[-1].declarations.append(NOT_FOR_USERS.sub("", token))
    for item in items:
        item.declarations.sort(key=is_sized)
    return items


def is_sized(declaration):
    """For other languages: the page has it, after the inline function that it is for."""
    return (name_of(declaration) or "").endswith("_sized")


def bare(comment):
    """The lines of a comment."""
    lines = comment.removeprefix("/*").removesuffix("*/").splitlines()
    lines = [lines[0].strip(), *(re.sub(r"^ \* ?", "", line).rstrip() for line in lines[1:])]
    return "\n".join(lines).strip("\n").splitlines()


def code(lines):
    return [".PP", ".RS 4", ".nf", *(literal(line.expandtabs(8)) or "\\&" for line in lines), ".fi", ".RE"]


def sentences(words):
    lines = re.split(r"(?<=[.:?!])  ", words)
    return [re.sub(r"\b(gale_\w+)\b", r"\\fB\1\\fR", literal(re.sub(" +", " ", line))) for line in lines]


def blocks(lines):
    """("code" | "text" | "item", lines) of a comment."""
    found = []
    for line in lines + [""]:
        kind, last = None, found[-1][0] if found else None
        if not line:
            found.append(["end", []])
            continue
        if line.startswith("\t") or (line.startswith("    ") and last != "item"):
            kind, line = "code", line.removeprefix("\t").removeprefix("    ")
        elif last == "item" and line.startswith("    "):
            kind = "item"
        elif re.match(r"\w+(?: \w+)? {2,}\S", line):
            kind = "item"
            found.append(["end", []])
        else:
            kind = "text"
        if kind == "code" and last == "end" and len(found) > 1 and found[-2][0] == "code":
            found.pop()
            found[-1][1].append("")
        if not found or found[-1][0] != kind:
            found.append([kind, []])
        found[-1][1].append(line)
    return [block for block in found if block[0] != "end"]


def prose(comment):
    roff = []
    for kind, lines in blocks(bare(comment)):
        if kind == "code":
            roff += code(lines)
        elif kind == "text":
            roff += [".PP", *sentences(joined(lines))]
        else:
            term, words = re.split(r" {2,}", lines[0], 1)
            roff += [".TP", f"\\fB{literal(term)}\\fR", *sentences(joined([words, *lines[1:]]))]
    return roff


def joined(lines):
    """Lines of a paragraph as one; a sentence that ends with a line is followed by two spaces, too."""
    text = ""
    for line in (line.strip() for line in lines):
        text += ("" if not text else "  " if text[-1] in ".:?!" else " ") + line
    return text


class Header:
    def __init__(self, path):
        text = path.read_text()
        comments = [c for c in re.findall(r"/\*.*?\*/", text, re.S) if "SPDX" not in c]
        self.path, self.head = f"gale/{path.name}", comments[0]
        body = pared(text.split(comments[0], 1)[1])
        parts = SECTION.split(body)
        self.sections = [items_of(part) for part in parts[::2]]
        if self.sections[1:] and not any(item.calls() for item in self.sections[0]):
            self.sections[:2] = [self.sections[0] + self.sections[1]]

    def purpose(self):
        """Of the head's first sentence, what stands before a colon."""
        return re.split(r"[:.] ", joined(bare(self.head)).split(" -- ", 1)[1])[0]

    def section_of(self, name):
        """Where it is declared."""
        for section in self.sections:
            if any(name in item.calls() for item in section):
                return section
        return None


class Program:
    def __init__(self, path):
        text = path.read_text()
        head = next(c for c in re.findall(r"/\*.*?\*/\n", text, re.S) if "SPDX" not in c)
        lines = bare(head.rstrip("\n"))
        self.name = path.stem if path.stem.startswith("gale") else f"gale_{path.stem}_open"
        self.purpose = lines[0].split(" -- ", 1)[1] if path.stem.startswith("gale") else None
        self.code = text.split(head, 1)[1].strip("\n").splitlines()
        self.errors, self.output, part = [], [], None
        for line in lines[1:]:
            if found := re.match(r"(Errors|Prints)\b(.*)", line):
                part, line = found[1], found[2]
            if part == "Errors":
                self.errors += line.split()
            elif part == "Prints" and line.startswith("\t"):
                self.output.append(line[1:])


def errors_of(include):
    text = (include / "errors.h").read_text()
    rows = re.findall(r'\bX\((\w+), (\d+),((?:[\s\\]*"[^"]*")+)\)', text)
    return {name: (number, "".join(re.findall(r'"([^"]*)"', words))) for name, number, words in rows}


def error_rows(names, errors):
    roff = []
    for name in sorted(names, key=lambda name: int(errors[name][0])):
        number, text = errors[name]
        roff += [".TP", f"\\fBGALE_ERR_{name}\\fR ({number})", literal(text)]
    return roff


def returned(section):
    """What the kinds of results are."""
    def those(pattern):
        return [name_of(text) for item in section for text in item.declarations
                if name_of(text) and not is_sized(text) and re.match(pattern, prototype(text))]

    for pattern, words in (
            (r"enum gale_err\b", "GALE_ERR_OK, which is 0, or an error; gale_err_text gives its text."),
            (r"struct gale_answer\b", "an answer: its verdict, and its why. gale_combine(3) lists both."),
            (r"struct gale_rule\b", "a rule. A mistake in it is found when a limiter is opened.")):
        if some := those(pattern):
            names = ", ".join(some[:-1]) + (" and " if some[1:] else "") + some[-1]
            yield f"{names} {'return' if some[1:] else 'returns'} {words}"


def synopsis(header, section):
    lines = [f"#include <{header.path}>", ""]
    for item in section:
        for text in item.declarations:
            if name_of(text):
                lines += [*prototype(text).splitlines(), ""]
    return [".nf", *(f"\\fB{literal(line.expandtabs(8))}\\fR" if line else "" for line in lines[:-1]), ".fi"]


def is_table_of_errors(item):
    return any(text.startswith("#define GALE_ERRORS(") for text in item.declarations)


def description(section, errors):
    roff = []
    for item in section:
        if is_table_of_errors(item):
            roff += ['.SS "All errors"', *error_rows(errors, errors)]
            continue
        types = [text for text in item.declarations if not name_of(text) and "GALE_ERRORS" not in text]
        if not item.comment and not types:
            continue
        names = [f"{call}()" for call in item.calls() if not call.endswith("_sized")]
        names += [" ".join(words) for text in types for words in re.findall(r"^(struct|enum) (\w+) \{", text)]
        if names:
            roff.append(f'.SS "{literal(", ".join(dict.fromkeys(names)))}"')
        if item.comment:
            roff += prose(item.comment)
        for is_macro, some in itertools.groupby(types, lambda text: text.startswith("#")):
            for text in ["\n".join(some)] if is_macro else some:
                roff += code(text.splitlines())
    return roff


def page(header, section, program, errors, version, others):
    calls = [call for item in section for call in item.calls()]
    names = [HEAD, *calls] if program.name == HEAD else calls
    told = [name for name in names if not name.endswith("_sized")]
    lines = ['.\\" SPDX-License-Identifier: MIT', '.\\" SPDX-FileCopyrightText: the gale authors',
             f'.TH {literal(program.name.upper())} 3 "" "gale {version}" "Library Functions Manual"',
             ".SH NAME", f"{literal(', '.join(told))} \\- {literal(program.purpose or header.purpose())}",
             ".SH SYNOPSIS", *synopsis(header, section), ".SH DESCRIPTION"]
    if program.name == HEAD or header.path != f"gale/{HEAD}.h":
        if section is header.sections[0]:
            lines += prose(re.sub(r"^/\*\n \* \w+\.h -- (.)", lambda title: "/*\n * " + title[1].upper(), header.head))
    lines += description(section, errors)
    if words := list(returned(section)):
        lines += [".SH RETURN VALUE"]
        for line in words:
            lines += [".PP", *sentences(line)]
    if program.errors:
        lines += [".SH ERRORS", *error_rows(program.errors, errors)]
    lines += [".SH EXAMPLES", *code(program.code)]
    if program.output:
        lines += [".PP", "The program prints", *code(program.output)]
    lines += [".SH SEE ALSO", *(f".BR {literal(other)} (3)," for other in others[:-1]), f".BR {literal(others[-1])} (3)"]
    return page_of(lines), names


def main():
    include, version, out = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    headers = [Header(path) for path in sorted(include.glob("*.h")) if path.name != "export.h"]
    errors = errors_of(include)
    places = []
    for program in (Program(pathlib.Path(path)) for path in sys.argv[4:]):
        call = "gale_version" if program.name == HEAD else program.name
        place = next(((header, section) for header in headers if (section := header.section_of(call))), None)
        if not place:
            sys.exit(f"{program.name}: no header declares it")
        places.append((*place, program))
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for header, section, program in places:
        others = [HEAD] + [p.name for h, _, p in places if h is header] if program.name != HEAD else \
            [p.name for _, _, p in places]
        others = [name for name in dict.fromkeys(others) if name != program.name]
        text, names = page(header, section, program, errors, version, others)
        (out / f"{program.name}.3").write_text(text, encoding="utf-8")
        for name in names:
            if name != program.name:
                (out / f"{name}.3").write_text(f".so man3/{program.name}.3\n", encoding="utf-8")


main()
