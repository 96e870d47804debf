#!/usr/bin/env python3
"""Decisions for each second of Redis CPU on a Cluster of three masters, and what an admission over
two slots takes.

A Cluster does not take a call about two slots, so that only admissions of one bucket share calls.
It is compared with one server that is asked for each admission in a call of its own. All servers
share one core, the load generator has the other. Printed are medians of the rounds, and ratios to
the one server. See docs/benchmarks.md.
"""

import argparse
import statistics
import subprocess
import time

import run

MASTERS = 3
SLOTS = 16384


class Cluster:
    def __init__(self, core):
        buses = [run.free_port() for _ in range(MASTERS)]
        self.servers = [
            run.Server(core, "--cluster-enabled", "yes", "--cluster-port", str(bus))
            for bus in buses
        ]
        first = self.servers[0]
        for i, server in enumerate(self.servers):
            server.cli("CLUSTER", "SET-CONFIG-EPOCH", str(i + 1))
            begin, end = i * SLOTS // MASTERS, (i + 1) * SLOTS // MASTERS - 1
            server.cli("CLUSTER", "ADDSLOTSRANGE", str(begin), str(end))
            server.cli("CLUSTER", "MEET", "127.0.0.1", str(first.port), str(buses[0]))
        while not all(self.is_ok(server) for server in self.servers):
            time.sleep(0.1)

    @staticmethod
    def is_ok(server):
        info = server.cli("CLUSTER", "INFO")
        return "cluster_state:ok" in info and f"cluster_known_nodes:{MASTERS}" in info

    @property
    def address(self):
        return "cluster:" + ",".join(f"redis://127.0.0.1:{s.port}" for s in self.servers)


def measure(address, servers, args, scenario, outstanding):
    for server in servers:
        server.cli("FLUSHALL")
    before = sum(server.cpu() for server in servers)
    command = ["taskset", "-c", args.load_core, args.binary, address, scenario, str(args.seconds)]
    # As many calls in flight as admissions under way: none waits for another, none share a call.
    done = subprocess.run(
        [*command, str(outstanding), str(outstanding)], capture_output=True, text=True, check=True
    )
    used = sum(server.cpu() for server in servers) - before
    if done.stderr:
        raise SystemExit(done.stderr)
    decisions, span, own, median, _, calls = (float(field) for field in done.stdout.split())
    # It also works before and after the measured span.
    everything = decisions * (1.35 if outstanding > 1 else 1)
    return {
        "redis_us": used / everything * 1e6,
        "own_us": own / decisions * 1e6,
        "rate": decisions / span,
        "per_call": decisions / max(calls, 1),
        "median": median,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=str(run.ROOT / "build/release/bench/redis_decisions"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--redis-core", default="0")
    parser.add_argument("--load-core", default="1")
    args = parser.parse_args()
    single = run.Server(args.redis_core)
    cluster = Cluster(args.redis_core)
    places = {
        "one server": (f"redis://127.0.0.1:{single.port}", [single]),
        "three masters": (cluster.address, cluster.servers),
    }
    try:
        rows = {}
        for _ in range(args.rounds):
            for what, scenario, outstanding in (
                ("under load, a call each", "different", 1024),
                ("one bucket, one at a time", "one", 1),
                ("two buckets, one at a time", "pair", 1),
            ):
                for place, (address, servers) in places.items():
                    # As many for each server, so that it finds as many calls to do at a time.
                    many = outstanding * len(servers) if outstanding > 1 else 1
                    row = measure(address, servers, args, scenario, many)
                    rows.setdefault((what, place), []).append(row)

        def median(key, field):
            return statistics.median(row[field] for row in rows[key])

        print(f"{'':28}{'':15}{'decisions/s':>12}{'redis us':>10}{'CPU ratio':>11}{'own us':>8}"
              f"{'per call':>10}{'median us':>11}{'ratio':>7}")
        for what, place in rows:
            key, one = (what, place), (what, "one server")
            print(f"{what:28}{place:15}{median(key, 'rate'):12.0f}{median(key, 'redis_us'):10.2f}"
                  f"{median(one, 'redis_us') / median(key, 'redis_us'):11.2f}"
                  f"{median(key, 'own_us'):8.2f}{median(key, 'per_call'):10.1f}"
                  f"{median(key, 'median'):11.0f}{median(key, 'median') / median(one, 'median'):7.2f}")
    finally:
        for server in [single, *cluster.servers]:
            server.stop()


if __name__ == "__main__":
    main()
