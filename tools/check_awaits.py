#!/usr/bin/env python3
"""The await rule: an await stands only as one of

    auto x = co_await f(names);        co_await f(names);        co_return co_await f(names);

never inside a condition, `?:`, braces or a call, and with no braced aggregate, capturing lambda or
second await in the same statement. Other forms are read wrongly by people and, some of them, by
GCC before 14 (temporaries destroyed twice, bodies that never run). The cure is always to name the
inner thing on the line before. Prints `file:line: message` per finding and exits 1 if there is any.
"""

import argparse
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cpp_text  # noqa: E402

AWAIT = re.compile(r"\bco_await\b")
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)

# What may stand before the await in its statement.
PREFIX = re.compile(
    r"(?:co_return|(?:const\s+)?auto\s*(?:const\s*)?[&*]{0,2}\s*(?:\w+|\[[\w\s,]*\])\s*=)?"
)

# A statement that an await may be the body of: `if (...) co_await f();`, `case 1: co_await f();`.
LABEL = re.compile(
    r"(?:else\b|do\b|case\b[^:?]*(?:::[^:?]*)*:(?!:)|\w+\s*:(?!:)|\[\[.*?\]\])\s*"
)
CONTROL = re.compile(r"(?:if(?:\s+constexpr)?|while|for|switch)\s*\(")

OPENING = {"(": ")", "[": "]", "{": "}"}


def closing(code, offset):
    """The offset of the bracket that closes the one at `offset`, or the end of the text."""
    depth = 0
    for i in range(offset, len(code)):
        if code[i] in "([{":
            depth += 1
        elif code[i] in ")]}":
            depth -= 1
            if depth == 0:
                return i
    return len(code)


def without_control(head):
    """Drops what an `if (...)`, `else` or `case x:` puts before the statement proper."""
    head = head.lstrip()
    while True:
        label, control = LABEL.match(head), CONTROL.match(head)
        if label:
            head = head[label.end() :]
        elif control:
            head = head[closing(head, control.end() - 1) + 1 :].lstrip()
        else:
            return head.rstrip()


def without_plain_lambdas(expression):
    """Drops lambdas that capture nothing, which are harmless beside an await."""
    while match := re.search(r"\[\s*\]\s*(\((?:[^(){}]|\([^(){}]*\))*\)[^{};]*)?\{", expression):
        end = closing(expression, match.end() - 1)
        expression = expression[: match.start()] + "0" + expression[end + 1 :]
    return expression


def statement_end(code, offset):
    """The offset of the `;` that ends the statement, or None if a bracket or comma comes first."""
    i = offset
    while i < len(code):
        if code[i] in OPENING:
            i = closing(code, i)
        elif code[i] == ";":
            return i
        elif code[i] in ")]}":
            return None
        elif code[i] == ",":
            # Still fine between the angle brackets of a template argument list.
            so_far = re.sub(r"->|<<|<=|>=", "", code[offset:i])
            if so_far.count("<") <= so_far.count(">"):
                return None
        i += 1
    return None


def outermost(expression):
    """The expression without what stands inside its brackets."""
    kept, i = "", 0
    while i < len(expression):
        kept += expression[i]
        if expression[i] in OPENING:
            i = closing(expression, i)
            kept += expression[i : i + 1]
        i += 1
    return kept


def fault(code, start, opener, statement_start):
    """What is wrong with the await at `start`, or None."""
    if opener not in ("{", ""):
        return "inside a condition, a call or an index: give its result a name first"
    end = statement_end(code, start)
    if end is None:
        return "inside braces or a list: give its result a name first"
    head = without_control(code[statement_start:start])
    if not PREFIX.fullmatch(head):
        return "not one of `auto x = co_await f();`, `co_await f();`, `co_return co_await f();`"
    operand = without_plain_lambdas(code[start + len("co_await") : end])
    if AWAIT.search(operand):
        return "a second await in the same statement: give the inner result a name first"
    if "?" in operand:
        return "a `?:` in the same statement: name its result on the line before"
    if "{" in operand:
        return (
            "a braced aggregate or capturing lambda in the same statement: "
            "name it on the line before and std::move it"
        )
    if re.search(r"^\s*\(|&&|[-+/%^|!=]", outermost(operand).replace("->", "")):
        return "of more than a call: name the combined awaitable before, or compute with it after"
    return None


def check(text):
    """(line, message) of each await in the text that breaks the rule."""
    code = cpp_text.code_only(text)
    findings = []
    for directive in DIRECTIVE.finditer(code):
        if AWAIT.search(directive[0]):
            line = cpp_text.line_of(code, directive.start())
            findings.append((line, "co_await inside a macro cannot be checked"))
    code = DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), code)

    open_brackets = []  # (bracket, start of the statement it stands in)
    statement_start = 0
    for match in re.finditer(r"\bco_await\b|[()\[\]{};]", code):
        token = match[0]
        if token == "co_await":
            if re.search(r"\boperator\s*$", code[: match.start()][-40:]):
                continue
            opener = open_brackets[-1][0] if open_brackets else ""
            message = fault(code, match.start(), opener, statement_start)
            if message:
                findings.append((cpp_text.line_of(code, match.start()), f"await {message}"))
        elif token in OPENING:
            open_brackets.append((token, statement_start))
            if token == "{":
                statement_start = match.end()
        else:
            if token != ";" and open_brackets:
                _, statement_start = open_brackets.pop()
            # In parentheses neither the `;` of a `for` nor the `}` of a lambda ends a statement.
            if token in "};" and (not open_brackets or open_brackets[-1][0] == "{"):
                statement_start = match.end()
    return findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parent.parent)
    root = pathlib.Path(parser.parse_args().root).resolve()

    failed = False
    for path in cpp_text.sources(root, "src", "apps"):
        for line, message in check(path.read_text(encoding="utf-8", errors="replace")):
            print(f"{path.relative_to(root)}:{line}: {message}", file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
