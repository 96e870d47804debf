#!/usr/bin/env python3
"""Decisions for each second of Redis CPU on one, two and four shards, and what a decision over two
shards takes.

All servers share one core, the load generator has the other. Under load each shard is asked for as
many decisions at a time as the single server, so that calls are equally full: first one shard after
the other, each of which has the core for itself as in real life, then all at once. Printed are
medians of the rounds, and ratios to one server. See docs/benchmarks.md.
"""

import statistics

import run


def main():
    args = run.arguments(__doc__)
    servers = [run.Server(args.redis_core) for _ in range(4)]
    try:
        rows = {}
        for _ in range(args.rounds):
            for count in (1, 2, 4):
                some = servers[:count]
                urls = ",".join(f"redis://127.0.0.1:{server.port}" for server in some)
                row = run.each_alone(some, urls, args, "different", 1024)
                rows.setdefault(("under load, one at a time", count), []).append(row)
                row = run.stint(some, urls, args, "different", 1024 * count)
                rows.setdefault(("under load, on one core", count), []).append(row)
                if count <= 2:
                    row = run.stint(some, urls, args, "pair", 1)
                    rows.setdefault(("two buckets, one at a time", count), []).append(row)

        def median(key, what):
            return statistics.median(row[what] for row in rows[key])

        print(f"{'':28}{'shards':>7}{'decisions/s':>13}{'redis us':>10}{'CPU ratio':>11}"
              f"{'per call':>10}{'median us':>11}{'ratio':>7}")
        for key in sorted(rows):
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
