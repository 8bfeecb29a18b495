# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""roff.py -- text in the language of man pages, for man-page.py and man-calls.py."""

AS_TYPED = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"}


def literal(text):
    """Text that reads as it is typed."""
    text = "".join(AS_TYPED.get(letter, letter) for letter in text)
    return "\\&" + text if text.startswith(".") else text


def page_of(lines):
    """The text of a page; a heading begins a paragraph by itself."""
    kept = [line for before, line in zip(["", *lines], lines) if line != ".PP" or not before.startswith((".SH", ".SS"))]
    return "\n".join(kept) + "\n"
