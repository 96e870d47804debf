#!/usr/bin/env python3
"""House rules that a search can check: `#pragma once` in every header, no sleeps under src/ and
tests/ (end-to-end tests wait in bounded polls and are exempt), no skipped or disabled tests.
Prints `file:line: message` per finding and exits 1 if there is any.
"""

import argparse
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cpp_text  # noqa: E402

PRAGMA = re.compile(r"^#pragma once$", re.MULTILINE)
SLEEP = re.compile(r"\b(?:sleep_for|sleep_until|usleep|nanosleep|clock_nanosleep|sleep)\s*\(")
SKIPPED = re.compile(r"\bGTEST_SKIP\b|\bDISABLED_\w+")


def check(name, text):
    """(line, message) of each finding in the file `name`, a path from the project root."""
    code = cpp_text.code_only(text)
    if name.endswith(".h") and not PRAGMA.search(code):
        yield 1, "a header needs #pragma once"
    rules = [(SKIPPED, "no test is skipped or disabled: mend it or remove it")]
    if name.startswith(("src/", "tests/")) and not name.startswith("tests/e2e/"):
        rules.append((SLEEP, "sleeps: inject the time, or wait for the event itself"))
    for pattern, message in rules:
        for match in pattern.finditer(code):
            yield cpp_text.line_of(code, match.start()), f"{match[0].rstrip(' (')}: {message}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parent.parent)
    root = pathlib.Path(parser.parse_args().root).resolve()

    failed = False
    for path in cpp_text.sources(root, "include", "src", "apps", "tests", "bench", "examples"):
        name = path.relative_to(root).as_posix()
        for line, message in check(name, path.read_text(encoding="utf-8", errors="replace")):
            print(f"{name}:{line}: {message}", file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
