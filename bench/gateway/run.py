#!/usr/bin/env python3
"""Requests per second and latency of the gateway, beside nginx and beside the bare upstream.

    bench/gateway/run.py [--stint build/release/stint] [--rounds 5] [--seconds 4]

The proxy (stint or nginx, one worker each) has one core for itself; wrk and the upstream (an nginx
that answers a fixed chat completion) share another. In each round the three take their turns under
three loads: 64 connections as fast as they go; 32 with pauses, a moderate rate that is the same
for all; one connection. Printed are medians over the rounds. docs/benchmarks.md says what to make
of them.
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import processes

# name: connections, longest pause after an answer in ms
LOADS = {"full": (64, None), "moderate": (32, 15), "single": (1, None)}
TARGETS = ("direct", "nginx", "stint")


def busy_seconds(core):
    """CPU time that anybody has used on this core."""
    for line in pathlib.Path("/proc/stat").read_text().splitlines():
        name, *ticks = line.split()
        if name == f"cpu{core}":
            user, nice, system, _, _, irq, softirq, steal, *_ = map(int, ticks)
            return (user + nice + system + irq + softirq + steal) / processes.TICKS_PER_SECOND
    return 0.0


def wrk(port, core, load, seconds):
    connections, pause_ms = LOADS[load]
    environment = {"PATH": os.environ["PATH"]}
    if pause_ms:
        environment["STINT_BENCH_PAUSE_MS"] = str(pause_ms)
    command = ["taskset", "-c", str(core), "wrk", "-t1", f"-c{connections}", f"-d{seconds}s"]
    command += ["-s", str(processes.HERE / "chat.lua"), f"http://127.0.0.1:{port}"]
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=seconds + 30
    )
    for line in ended.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line.removeprefix("RESULT "))
    sys.exit(f"wrk failed:\n{ended.stdout}{ended.stderr}")


def measure(program, proxy_core, load_core, load, seconds):
    cpu, busy = program.cpu_seconds(), busy_seconds(proxy_core)
    result = wrk(program.port, load_core, load, seconds)
    if result["errors"]:
        sys.exit(f"{result['errors']} of {result['requests']} requests failed")
    cpu, busy = program.cpu_seconds() - cpu, busy_seconds(proxy_core) - busy
    result["rate"] = result["requests"] / result["seconds"]
    result["cpu_us"] = cpu / result["requests"] * 1e6
    result["foreign"] = max(0.0, busy - cpu) / result["seconds"]
    return result


def report(results, rounds):
    def median(target, load, what):
        return statistics.median(row[what] for row in results[target, load])

    def in_rounds(load, value):
        """The median of a figure that is made from one round's figures, and its range."""
        all_values = [
            value({target: results[target, load][i] for target in TARGETS}) for i in range(rounds)
        ]
        return statistics.median(all_values), min(all_values), max(all_values)

    print(f"{'load':10}{'through':8}{'req/s':>9}{'p50 us':>9}{'p99 us':>9}{'CPU us/req':>12}")
    for load in LOADS:
        for target in TARGETS:
            figures = [median(target, load, what) for what in ("rate", "p50_us", "p99_us")]
            cpu = f"{median(target, load, 'cpu_us'):12.1f}" if target != "direct" else ""
            print(f"{load:10}{target:8}" + "".join(f"{figure:9.0f}" for figure in figures) + cpu)
    print()
    ratio = in_rounds("full", lambda row: row["stint"]["rate"] / row["nginx"]["rate"])
    print("requests/s, stint / nginx:      {:.2f} ({:.2f} to {:.2f})".format(*ratio))
    cpu = in_rounds("full", lambda row: row["nginx"]["cpu_us"] / row["stint"]["cpu_us"])
    print("the same by CPU time a request: {:.2f} ({:.2f} to {:.2f})".format(*cpu))
    for load in ("moderate", "single"):
        added = {
            target: in_rounds(load, lambda row, t=target: row[t]["p99_us"] - row["direct"]["p99_us"])
            for target in ("nginx", "stint")
        }
        texts = [
            "{} {:.0f} us ({:.0f} to {:.0f})".format(target, *added[target]) for target in added
        ]
        times = added["stint"][0] / added["nginx"][0] if added["nginx"][0] > 0 else float("nan")
        print(f"p99 added, {load + ':':20} {', '.join(texts)}: {times:.1f} times")
    foreign = [
        row["foreign"] for (target, _), rows in results.items() for row in rows if target != "direct"
    ]
    print(
        "others on the proxy's core:     {:.0%} of the time (worst run {:.0%})".format(
            statistics.mean(foreign), max(foreign)
        )
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stint", default=processes.ROOT / "build/release/stint")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4, help="of each run under full load")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        sys.exit("needs two cores")
    load_core, proxy_core = cores[0], cores[-1]
    processes.end_on_signals()
    processes.allow_files(4096)

    results = {(target, load): [] for target in TARGETS for load in LOADS}
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="stint-bench-"))
        upstream = processes.start_nginx(stack, "upstream.conf", folder, load_core)
        programs = {
            "direct": upstream,
            "nginx": processes.start_nginx(stack, "nginx.conf", folder, proxy_core, upstream.port),
            "stint": processes.start_stint(
                stack, options.stint, folder, upstream.port, proxy_core
            ),
        }
        for target in TARGETS:  # warm caches, filled pools
            measure(programs[target], proxy_core, load_core, "full", 1)
        for turn in range(options.rounds):
            for load in LOADS:
                for i in range(len(TARGETS)):
                    target = TARGETS[(i + turn) % len(TARGETS)]
                    seconds = options.seconds if load == "full" else max(1, options.seconds - 1)
                    results[target, load].append(
                        measure(programs[target], proxy_core, load_core, load, seconds)
                    )
    report(results, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
