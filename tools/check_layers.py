#!/usr/bin/env python3
"""Who may use whom: fails on an #include that the layering forbids.

One folder under src/ is one layer. The table ALLOWED says which layers each may include; a public
header (include/stint) belongs to the layer that PUBLIC_HEADERS names, and including it counts as
including that layer. Tests and benchmarks, also those beside their source (*_test.cc,
*_testing.h, *_bench.cc), may use everything. Prints `file:line: message` per finding and exits 1
if there is any.
"""

import argparse
import collections
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cpp_text  # noqa: E402

# layer -> the layers it may use. Every layer may use itself.
ALLOWED = {
    "base": "",
    "limit": "base",
    "policy": "base limit",
    "ring": "base limit",
    # Below everything that does I/O.
    "observe": "base",
    "net": "base observe",
    # Neither knows of limits, stores, or the other.
    "redis": "base ring observe net",
    "http": "base observe net",
    "store": "base limit observe net redis",
    "admission": "base limit policy observe net store",
    "embed": "base limit policy observe net redis store admission",
    "config": "base limit policy ring observe net http",
    # Never each other; of `store` only the contract (see CONCRETE_STORES).
    "gateway": "base limit policy observe net http store admission config",
    "decision": "base limit policy observe net http store admission config",
    "admin": "base limit policy observe net http store admission config",
    "cli": "base limit policy ring observe net http store admission config",
}
ALLOWED = {layer: set(uses.split()) | {layer} for layer, uses in ALLOWED.items()}

# Only wiring may use these: `store` itself (its factory), `admission` and apps.
CONCRETE_STORES = ("store/memory", "store/redis")
MAY_USE_CONCRETE_STORES = {"store", "admission", "embed"}

PUBLIC_HEADERS = {
    "error.h": "base",
    "time.h": "base",
    "limit.h": "limit",
    "decision.h": "limit",
    "headers.h": "limit",
    "bucket_info.h": "limit",
    "outage.h": "limit",
    "attributes.h": "policy",
    "policy.h": "policy",
    "hash_ring.h": "ring",
    "limiter.h": "admission",
    "redis.h": "embed",
}

# Not layers: they may use everything, and nothing under src/ or include/ uses them.
OUTSIDE = {"apps", "tests", "bench", "examples", "tools"}

# Layers of pure steps: a function of its arguments. No file, socket, thread, clock or entropy.
PURE = {"limit", "policy", "ring"}
IMPURE_INCLUDES = re.compile(
    r"(fstream|iostream|istream|ostream|filesystem|thread|future|mutex|shared_mutex|"
    r"condition_variable|random|ctime|csignal|"
    r"(sys|arpa|netinet)/.*|net/if.*|(unistd|fcntl|poll|netdb|pthread|signal|stdio|time)\.h|"
    r"boost/(asio|beast|process)[./].*|openssl/ssl\.h|hiredis.*|spdlog/.*|grpc.*)$"
)

# What below apps touches the real world: (pattern, the only files that may, message).
REAL_WORLD = (
    (
        re.compile(
            r"\b(?:steady|system|high_resolution|utc)_clock\s*::\s*now\b"
            r"|\b(?:clock_gettime|gettimeofday)\b"
        ),
        {"src/base/system_clock.cc"},
        "reads a clock: take the time as an argument, or a stint::Clock",
    ),
    (
        re.compile(r"\brandom_device\b"),
        {"src/base/entropy.cc"},
        "reads entropy: take a source of it",
    ),
    (re.compile(r"\b(?:secure_)?getenv\b"), set(), "reads the environment: only apps may"),
)

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)


class Check:
    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        self.findings = []
        # (from layer, to layer) -> places of such includes, for the table and the cycles.
        self.uses = collections.defaultdict(list)

    def report(self, path, line, message):
        self.findings.append(f"{path}:{line}: {message}")

    def run(self):
        for path in cpp_text.sources(self.root, "src", "include", "examples"):
            self.check_file(path)
        self.report_cycles()
        return self.findings

    def check_file(self, path):
        name = path.relative_to(self.root).as_posix()
        folder, *rest = name.split("/")
        text = path.read_text(encoding="utf-8", errors="replace")
        if folder == "examples":
            self.check_example(name, text)
            return
        if path.stem.endswith(("_test", "_testing", "_bench")):
            return
        if folder == "include":
            layer = PUBLIC_HEADERS.get("/".join(rest[1:])) if rest[0] == "stint" else None
            if layer is None:
                self.report(name, 1, "unknown public header: name its layer in PUBLIC_HEADERS")
                return
        else:
            layer = rest[0] if len(rest) > 1 else None
            if layer not in ALLOWED:
                self.report(name, 1, f"'{layer or name}' is not a layer: name it in ALLOWED")
                return

        for line, quote, target in includes(text):
            self.check_include(name, line, layer, folder == "include", quote, target)
        self.check_tokens(name, text)

    def check_include(self, name, line, layer, is_public, quote, target):
        first, _, rest = target.partition("/")
        if layer in PURE and quote == "<" and IMPURE_INCLUDES.match(target):
            self.report(name, line, f"'{layer}' does no I/O, but includes <{target}>")
            return
        if first in (".", ".."):
            self.report(name, line, f'"{target}": write the path from src/, not a relative one')
            return
        if first in OUTSIDE and (quote == '"' or (self.root / target).exists()):
            self.report(name, line, f"nothing here may use '{first}' ({target})")
            return

        used = self.layer_of(name, line, quote, target)
        if is_public and first != "stint" and ("/" in target or target.endswith(".h")):
            self.report(
                name, line, f"a public header includes {target}, which users do not have installed"
            )
        if used is None:
            return
        self.uses[layer, used].append(f"{name}:{line}")
        if used not in ALLOWED[layer]:
            self.report(name, line, f"'{layer}' may not use '{used}' ({target})")
        elif target.startswith(CONCRETE_STORES) and layer not in MAY_USE_CONCRETE_STORES:
            self.report(name, line, f"'{layer}' may not use a concrete store ({target})")

    def layer_of(self, name, line, quote, target):
        """The layer that an include reaches, or None if it is not one of ours."""
        first, _, rest = target.partition("/")
        if first == "stint":
            if rest not in PUBLIC_HEADERS:
                self.report(name, line, f"unknown public header {target}: see PUBLIC_HEADERS")
            return PUBLIC_HEADERS.get(rest)
        # <net/if.h> is the system's unless there is such a file here.
        if first in ALLOWED and rest and (quote == '"' or (self.root / "src" / target).exists()):
            return first
        if rest and (self.root / "src" / first).is_dir():
            self.report(name, line, f"'{first}' is not a layer: name it in ALLOWED")
        return None

    def check_example(self, name, text):
        for line, quote, target in includes(text):
            first, _, rest = target.partition("/")
            if rest and (first in ALLOWED or first in OUTSIDE):
                self.report(name, line, f"an example uses public headers only, not {target}")

    def check_tokens(self, name, text):
        code = cpp_text.code_only(text)
        for pattern, allowed_files, message in REAL_WORLD:
            if name in allowed_files:
                continue
            for match in pattern.finditer(code):
                self.report(name, cpp_text.line_of(code, match.start()), message)

    def report_cycles(self):
        """Cannot happen while ALLOWED has none; says so when a finding above closes one."""
        graph = collections.defaultdict(set)
        for user, used in self.uses:
            if user != used:
                graph[user].add(used)
        for cycle in cycles(graph):
            first, second = cycle[0], cycle[1]
            place = self.uses[first, second][0]
            self.findings.append(f"{place}: layers in a circle: {' -> '.join(cycle)}")

    def table(self):
        layers = [name for name in ALLOWED if any(name in pair for pair in self.uses)]
        width = max(map(len, layers), default=0)
        rows = ["includes of each layer (down) by layer included (across)"]
        rows.append(" " * width + "".join(f"  {name}" for name in layers))
        for user in layers:
            counts = (str(len(self.uses.get((user, used), ())) or ".") for used in layers)
            cells = (count.rjust(len(used) + 2) for count, used in zip(counts, layers))
            rows.append(user.ljust(width) + "".join(cells))
        return "\n".join(rows)


def includes(text):
    """(line, opening quote, target) of each include that is not commented out."""
    code = cpp_text.without_comments(text)
    for match in INCLUDE.finditer(code):
        yield cpp_text.line_of(code, match.start(1)), match[1], match[2]


def cycles(graph):
    """One cycle, as [a, b, ..., a], through each node that lies on one and on no earlier cycle."""
    found, covered = [], set()
    for start in sorted(graph):
        if start in covered:
            continue
        queue, came_from = collections.deque([start]), {}
        while queue and start not in came_from:
            node = queue.popleft()
            for follower in sorted(graph.get(node, ())):
                if follower not in came_from:
                    came_from[follower] = node
                    queue.append(follower)
        if start in came_from:
            path = [start]
            while path[-1] != start or len(path) == 1:
                path.append(came_from[path[-1]])
            found.append(path[::-1])
            covered.update(path)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--table", action="store_true", help="also print who includes whom")
    args = parser.parse_args()

    check = Check(args.root)
    findings = check.run()
    if args.table:
        print(check.table())
    for finding in findings:
        print(finding, file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
