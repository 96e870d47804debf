#!/usr/bin/env python3
"""Decisions for each second of Redis CPU on one, two and four shards, and what a decision over two
shards takes.

All servers share one core, the load generator has the other. Under load each shard is asked for as
many decisions at a time as the single server, so that calls are equally full. Printed are medians
of the rounds, and ratios to one server. See docs/benchmarks.md.
"""

import argparse
import statistics
import subprocess

import run


def measure(servers, args, scenario, outstanding):
    urls = ",".join(f"redis://127.0.0.1:{server.port}" for server in servers)
    for server in servers:
        server.cli("FLUSHALL")
    before = sum(server.cpu() for server in servers)
    command = ["taskset", "-c", args.load_core, args.binary, urls, scenario, str(args.seconds)]
    done = subprocess.run(
        [*command, str(outstanding)], capture_output=True, text=True, check=True
    )
    used = sum(server.cpu() for server in servers) - before
    if done.stderr:
        raise SystemExit(done.stderr)
    decisions, span, _, median, _, calls = (float(field) for field in done.stdout.split())
    # It also works before and after the measured span.
    everything = decisions * (1.35 if outstanding > 1 else 1)
    return {
        "redis_us": used / everything * 1e6,
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
    servers = [run.Server(args.redis_core) for _ in range(4)]
    try:
        rows = {}
        for _ in range(args.rounds):
            for count in (1, 2, 4):
                some = servers[:count]
                row = measure(some, args, "different", 1024 * count)
                rows.setdefault(("under load", count), []).append(row)
            for count in (1, 2):
                row = measure(servers[:count], args, "pair", 1)
                rows.setdefault(("two buckets, one at a time", count), []).append(row)

        def median(key, what):
            return statistics.median(row[what] for row in rows[key])

        print(f"{'':28}{'shards':>7}{'decisions/s':>13}{'redis us':>10}{'CPU ratio':>11}"
              f"{'per call':>10}{'median us':>11}{'ratio':>7}")
        for key in rows:
            what, count = key
            one = (what, 1)
            print(f"{what:28}{count:7}{median(key, 'rate'):13.0f}{median(key, 'redis_us'):10.2f}"
                  f"{median(one, 'redis_us') / median(key, 'redis_us'):11.2f}"
                  f"{median(key, 'per_call'):10.1f}{median(key, 'median'):11.0f}"
                  f"{median(key, 'median') / median(one, 'median'):7.2f}")
    finally:
        for server in servers:
            server.stop()


if __name__ == "__main__":
    main()
