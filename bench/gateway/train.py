#!/usr/bin/env python3
"""Puts a stint that records a profile through what gateways do all day; see tools/profile.sh.

    LLVM_PROFILE_FILE=/tmp/%p.profraw bench/gateway/train.py --stint build/profile/stint

Chats, streams, embeddings, plain services; admitted, refused, unknown; with counters in memory and
in a Redis; at full load and with pauses; with an access log.
"""

import argparse
import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import processes

HERE = processes.HERE / "training"
STINT = """
proxy: {{addr: "127.0.0.1:{port}", workers: 1}}
observability: {{access_log: {access_log}}}
shutdown: {{min_drain_secs: 0, max_drain_secs: 2}}
resources_file: {here}/resources.yaml
"""
REDIS = """
ratelimit:
  backend: redis
  redis: {{url: "redis://127.0.0.1:{port}", timeout_ms: 1000}}
"""


def start_redis(stack, folder):
    (port,) = processes.free_ports(1)
    command = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", ""]
    program = processes.Program([*command, "--appendonly", "no"], port, folder=folder)
    stack.callback(program.stop)
    until = time.monotonic() + 10
    ping = ["redis-cli", "-p", str(port), "ping"]
    while b"PONG" not in subprocess.run(ping, capture_output=True).stdout:
        if time.monotonic() > until:
            sys.exit("redis-server does not start")
        time.sleep(0.05)
    return port


def send(port, connections, seconds, pause_ms=None):
    environment = {"PATH": os.environ["PATH"]}
    if pause_ms:
        environment["STINT_BENCH_PAUSE_MS"] = str(pause_ms)
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(HERE / "requests.lua")]
    ended = subprocess.run(
        [*command, f"http://127.0.0.1:{port}"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds + 30,
    )
    answers = re.search(r"^ANSWERS(.*)$", ended.stdout, re.MULTILINE)
    # A profile of faults would be worse than none.
    if answers is None or set(re.findall(r"(\d+)=", answers[1])) != {"200", "401", "404", "429"}:
        sys.exit(f"not what was asked for:\n{ended.stdout}{ended.stderr}")
    print(f"{connections} connections for {seconds} s:{answers[1]}")


def train(stack, folder, binary, upstream_port, redis_port=None):
    """One life of the program: it writes its profile when it ends."""
    (port,) = processes.free_ports(1)
    text = STINT.format(port=port, here=HERE, access_log="true" if redis_port else "false")
    text += REDIS.format(port=redis_port) if redis_port else ""
    configuration = pathlib.Path(folder) / "stint.yaml"
    configuration.write_text(text)
    environment = {
        "BENCH_UPSTREAM_PORT": str(upstream_port),
        "LLVM_PROFILE_FILE": os.environ["LLVM_PROFILE_FILE"],
    }
    program = processes.Program(
        [pathlib.Path(binary).resolve(), "--config", configuration],
        port,
        folder=folder,
        environment=environment,
    )
    stack.callback(program.stop)
    program.wait_ready("/readyz")
    send(port, 64, 4)
    send(port, 16, 3, pause_ms=10)
    program.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stint", required=True)
    options = parser.parse_args()
    processes.end_on_signals()
    processes.allow_files(4096)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="stint-bench-"))
        upstream = processes.start_nginx(stack, "training/upstream.conf", folder, None)
        train(stack, folder, options.stint, upstream.port)
        train(stack, folder, options.stint, upstream.port, start_redis(stack, folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
