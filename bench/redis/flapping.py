#!/usr/bin/env python3
"""One of three shards that comes and goes: what becomes of requests that have nothing to do with it.

A gateway counts on three Redis servers. For as long as the last of them is well, and then for as
long as it stands still for two seconds of every four, its users and those of the others send
requests at a moderate rate. Printed are the latencies of the others' users, and the p99 of the
second span beside that of the first. Every answer must be 200. See docs/benchmarks.md.
"""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading

import run

sys.path.insert(0, str(run.HERE.parent / "gateway"))
import processes  # noqa: E402

USERS = [f"user{n}" for n in range(300)]
PERIOD = 2  # seconds that it is away, and there

STINT = """
proxy: {{addr: "127.0.0.1:{port}", workers: 1}}
observability: {{access_log: false}}
shutdown: {{min_drain_secs: 0, max_drain_secs: 2}}
resources_file: resources.yaml
ratelimit:
  backend: redis
  redis: {{mode: ring, urls: [{urls}]}}
"""
RESOURCES = """
_format_version: "1"
routes:
  - name: pay
    match: {{path_prefix: /pay}}
    upstream: "http://127.0.0.1:{port}"
    group_by: ["header:x-user"]
    rate_limit: [{{unit: requests, quota: 1000000000, per: 1d}}]
"""


def start_stint(stack, binary, folder, upstream, servers, core):
    (port,) = processes.free_ports(1)
    urls = ", ".join(f'"redis://127.0.0.1:{server.port}"' for server in servers)
    folder = pathlib.Path(folder)
    (folder / "stint.yaml").write_text(STINT.format(port=port, urls=urls))
    (folder / "resources.yaml").write_text(RESOURCES.format(port=upstream.port))
    command = [pathlib.Path(binary).resolve(), "--config", folder / "stint.yaml"]
    program = processes.Program(command, port, folder=folder, core=core)
    stack.callback(program.stop)
    program.wait_ready("/readyz")
    return program


def users_by_server(port, servers):
    """Which users' buckets each server has, once each has sent a request."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for user in USERS:
        connection.request("GET", "/pay", headers={"X-User": user})
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise SystemExit(f"{user} was answered {answer.status}")
    connection.close()
    return [
        [user for user in USERS if any(key.endswith(f"={user}}}") for key in keys)]
        for keys in (server.cli("KEYS", "*").split() for server in servers)
    ]


def start_wrk(port, core, users, seconds):
    environment = {"PATH": os.environ["PATH"], "STINT_BENCH_USERS": ",".join(users),
                   "STINT_BENCH_PAUSE_MS": "15"}
    command = ["taskset", "-c", core, "wrk", "-t1", "-c16", f"-d{seconds}s", "--timeout", "10s",
               "-s", str(processes.HERE / "users.lua"), f"http://127.0.0.1:{port}"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def result_of(wrk):
    out, _ = wrk.communicate()
    for line in out.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line.removeprefix("RESULT "))
    raise SystemExit(f"wrk failed:\n{out}")


@contextlib.contextmanager
def flapping(server):
    over = threading.Event()

    def flap():
        while not over.wait(PERIOD):
            server.process.send_signal(signal.SIGSTOP)
            over.wait(PERIOD)
            server.process.send_signal(signal.SIGCONT)

    thread = threading.Thread(target=flap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stint", default=processes.ROOT / "build/release/stint")
    parser.add_argument("--seconds", type=int, default=60, help="of each of the two spans")
    args = parser.parse_args()
    processes.end_on_signals()
    load_core, own_core = "0", "1"
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="stint-bench-"))
        servers = []
        for _ in range(3):
            servers.append(run.Server(load_core))
            stack.callback(servers[-1].stop)
        upstream = processes.start_nginx(stack, "upstream.conf", folder, load_core)
        stint = start_stint(stack, args.stint, folder, upstream, servers, own_core)
        by_server = users_by_server(stint.port, servers)
        others = by_server[0] + by_server[1]
        spans = {}
        for what, disturbance in (("well", contextlib.nullcontext()),
                                  ("comes and goes", flapping(servers[2]))):
            with disturbance:
                loads = [start_wrk(stint.port, load_core, users, args.seconds)
                         for users in (others, by_server[2])]
                spans[what] = [result_of(load) for load in loads]
        print(f"{'the last shard':16}{'users of':>14}{'requests':>10}{'p50 us':>9}{'p99 us':>9}"
              f"{'errors':>8}")
        for what, rows in spans.items():
            for whose, row in zip(("the others", "the last"), rows):
                print(f"{what:16}{whose:>14}{row['requests']:10}{row['p50_us']:9}"
                      f"{row['p99_us']:9}{row['errors']:8}")
        times = spans["comes and goes"][0]["p99_us"] / spans["well"][0]["p99_us"]
        print(f"p99 of the others' users: {times:.2f} times that while all are well")
        if any(row["errors"] for rows in spans.values() for row in rows):
            raise SystemExit("some requests were not answered with 200")


if __name__ == "__main__":
    main()
