"""C++ source as plain text: what the checks of this folder share. No parser, just enough lexing."""

import pathlib
import re

_TOKEN = re.compile(
    r"""
      (?P<comment> //(?:\\\n|[^\n])* | /\*.*?\*/ )
    | (?P<raw>     \b(?:u8|[uUL])?R"(?P<delimiter>[^ ()\\\t\n]{0,16})\(.*?\)(?P=delimiter)" )
    | (?P<number>  \b[0-9](?:'?[\w.])* )      # so that 1'000 does not open a character
    | (?P<string>  "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' )
    """,
    re.DOTALL | re.VERBOSE,
)


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    """Comments become spaces; every other character keeps its place and its line."""
    return _TOKEN.sub(lambda m: _blank(m[0]) if m["comment"] else m[0], text)


def code_only(text):
    """As without_comments, and literals become "" padded with spaces."""

    def replace(match):
        if match["number"]:
            return match[0]
        if match["comment"]:
            return _blank(match[0])
        return '"' + _blank(match[0][1:-1]) + '"'

    return _TOKEN.sub(replace, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def sources(root, *folders):
    """All .h and .cc files of the folders, sorted; a folder that does not exist yet has none."""
    found = []
    for folder in folders:
        base = pathlib.Path(root) / folder
        found += [p for p in base.rglob("*") if p.suffix in (".h", ".cc") and p.is_file()]
    return sorted(found)
