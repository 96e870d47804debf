#!/usr/bin/env python3
"""Decisions for each second of Redis CPU on a Cluster of three masters, and what an admission over
two slots takes.

A Cluster does not take a call about two slots, so that only admissions of one bucket share calls.
It is compared with one server that is asked for each admission in a call of its own. All servers
share one core, the load generator has the other: first one master after the other is asked, each of
which has the core for itself as in real life, then all at once. Printed are medians of the rounds,
and ratios to the one server. See docs/benchmarks.md.
"""

import statistics
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


def main():
    args = run.arguments(__doc__, seconds=5)
    single = run.Server(args.redis_core)
    cluster = Cluster(args.redis_core)
    places = {
        "one server": (f"redis://127.0.0.1:{single.port}", [single]),
        "three masters": (cluster.address, cluster.servers),
    }
    try:
        rows = {}
        for _ in range(args.rounds):
            for place, (address, servers) in places.items():
                # As many calls in flight as admissions under way: none waits, none share a call.
                row = run.each_alone(servers, address, args, "different", 1024, 1024)
                rows.setdefault(("a call each, one at a time", place), []).append(row)
                # As many for each server, so that it finds as many calls to do at a time.
                many = 1024 * len(servers)
                row = run.stint(servers, address, args, "different", many, many)
                rows.setdefault(("a call each, on one core", place), []).append(row)
                for what, scenario in (("one bucket, idle", "one"), ("two buckets, idle", "pair")):
                    row = run.stint(servers, address, args, scenario, 1, 1)
                    rows.setdefault((what, place), []).append(row)

        def median(key, field):
            return statistics.median(row[field] for row in rows[key])

        print(f"{'':28}{'':15}{'decisions/s':>12}{'redis us':>10}{'CPU ratio':>11}{'own us':>8}"
              f"{'per call':>10}{'median us':>11}{'ratio':>7}")
        for what, place in sorted(rows):
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
