#!/usr/bin/env python3
"""Decisions a second of the store in Redis, beside a plain script on the same server.

The server has one core, the load generator the other. Each scenario is measured in turn with its
yardstick, several rounds; printed are medians and ratios. See docs/benchmarks.md.
"""

import argparse
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, core, *options):
        self.port = free_port()
        self.folder = tempfile.mkdtemp()
        self.process = subprocess.Popen(
            ["taskset", "-c", core, "redis-server", "--port", str(self.port), "--bind", "127.0.0.1",
             "--save", "", "--appendonly", "no", "--dir", self.folder, *options],
            stdout=subprocess.DEVNULL)
        for _ in range(200):
            if self.cli("PING", check=False) == "PONG":
                return
            time.sleep(0.02)
        raise SystemExit("redis-server does not start")

    def cli(self, *words, check=True):
        done = subprocess.run(["redis-cli", "-p", str(self.port), *words], capture_output=True,
                              text=True, check=check)
        return done.stdout.strip()

    def cpu(self):
        info = self.cli("INFO", "cpu")
        return sum(float(x) for x in re.findall(r"used_cpu_(?:sys|user):([0-9.]+)", info))

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder)


def plain(server, core, script, pipeline, clients, seconds):
    """Calls a second, Redis CPU per call in us, median latency in us."""
    sha = server.cli("SCRIPT", "LOAD", (HERE / script).read_text())
    words = ["EVALSHA", sha, "1", "plain:__rand_int__", "1000000000000", "60000"]
    base = ["taskset", "-c", core, "redis-benchmark", "-p", str(server.port), "-P", str(pipeline),
            "-c", str(clients), "-r", "100000", "--csv"]
    calls = 20000 if pipeline == 1 else int(80000 * seconds)
    before, began = server.cpu(), time.monotonic()
    done = subprocess.run([*base, "-n", str(calls), *words], capture_output=True, text=True,
                          check=True)
    took, used = time.monotonic() - began, server.cpu() - before
    row = done.stdout.strip().splitlines()[-1].replace('"', "").split(",")
    rate, median = float(row[-7]), float(row[-4]) * 1000
    del took
    return rate, used / calls * 1e6, median


def stint(servers, address, args, scenario, outstanding, in_flight=0, only=None, seconds=None):
    """What stint's store comes to on these servers, which are emptied before; see decisions.cc."""
    for server in servers:
        server.cli("FLUSHALL")
    before = sum(server.cpu() for server in servers)
    words = [scenario, seconds or args.seconds, outstanding, in_flight]
    words += [] if only is None else [only]
    done = subprocess.run(
        ["taskset", "-c", args.load_core, args.binary, address, *map(str, words)],
        capture_output=True, text=True, check=True)
    used = sum(server.cpu() for server in servers) - before
    if done.stderr:
        raise SystemExit(done.stderr)
    decisions, span, own, median, p99, calls, everything = map(float, done.stdout.split())
    return {"decisions": everything, "redis_s": used, "redis_us": used / everything * 1e6,
            "rate": decisions / span, "own_us": own / decisions * 1e6, "median": median,
            "p99": p99, "per_call": decisions / max(calls, 1)}


def each_alone(servers, address, args, scenario, outstanding, in_flight=0):
    """The same with one of several servers asked at a time: each has its core for itself."""
    rows = [stint(servers, address, args, scenario, outstanding, in_flight, only)
            for only in range(len(servers))]
    both = {name: statistics.mean(row[name] for row in rows) for name in rows[0]}
    both["redis_us"] = both["redis_s"] / both["decisions"] * 1e6
    return both


def arguments(description, seconds=3):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--binary", default=str(ROOT / "build/release/bench/redis_decisions"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=seconds)
    parser.add_argument("--redis-core", default="0")
    parser.add_argument("--load-core", default="1")
    return parser.parse_args()


def main():
    args = arguments(__doc__)
    server = Server(args.redis_core)
    url = f"redis://127.0.0.1:{server.port}"
    try:
        rows = {}
        for _ in range(args.rounds):
            for name, script, outstanding in (("different", "plain.lua", 1024),
                                              ("hot", "plain.lua", 1024),
                                              ("four", "plain4.lua", 1024)):
                server.cli("FLUSHALL")
                yard = plain(server, args.load_core, script, 64, 4, args.seconds)
                ours = stint([server], url, args, name, outstanding)
                rows.setdefault(name, []).append((yard, ours))
            server.cli("FLUSHALL")
            yard = plain(server, args.load_core, "plain.lua", 1, 1, args.seconds)
            ours = stint([server], url, args, "one", 1)
            rows.setdefault("one", []).append((yard, ours))
        print(f"{'':10} {'plain/s':>9} {'stint/s':>9} {'ratio':>6} {'redis us':>9} {'plain us':>9}"
              f" {'cpu ratio':>9} {'own us':>7} {'per call':>8} {'median us':>10} {'plain':>7}")
        for name, pairs in rows.items():
            mid = lambda f: statistics.median(f(y, o) for y, o in pairs)  # noqa: E731
            print(f"{name:10} {mid(lambda y, o: y[0]):9.0f} {mid(lambda y, o: o['rate']):9.0f}"
                  f" {mid(lambda y, o: o['rate'] / y[0]):6.2f}"
                  f" {mid(lambda y, o: o['redis_us']):9.2f} {mid(lambda y, o: y[1]):9.2f}"
                  f" {mid(lambda y, o: y[1] / o['redis_us']):9.2f}"
                  f" {mid(lambda y, o: o['own_us']):7.2f} {mid(lambda y, o: o['per_call']):8.1f}"
                  f" {mid(lambda y, o: o['median']):10.0f} {mid(lambda y, o: y[2]):7.0f}")
        stint([server], url, args, "different", 1024, seconds=1)
        size = server.cli("MEMORY", "USAGE", "stint:rl:1:{bench:key=4711}")
        print(f"a bucket with one fixed window and a key of 14 bytes: {size} bytes in Redis")
    finally:
        server.stop()


if __name__ == "__main__":
    main()
