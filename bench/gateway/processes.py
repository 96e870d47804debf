"""The programs of the gateway's benchmarks: started on free ports of loopback, ended for certain."""

import contextlib
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def allow_files(count):
    """As many open files as this; what is started from here on inherits it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= count:
        return
    if hard != resource.RLIM_INFINITY and hard < count:
        sys.exit(f"needs {count} open files, but only {hard} are allowed (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def end_on_signals():
    """Whatever ends the benchmark, its programs are ended too."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))


class Program:
    """A server that runs from the constructor to `stop`, on one core if that is given."""

    def __init__(self, command, port, *, folder, core=None, environment=None):
        self.port = port
        self._name = pathlib.Path(command[0]).name
        self._log = pathlib.Path(folder) / f"{self._name}-{port}.log"
        pinned = ["taskset", "-c", str(core)] if core is not None else []
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*pinned, *map(str, command)],
                env={"PATH": os.environ["PATH"] + ":/usr/sbin", **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
            )

    def wait_ready(self, path, seconds=10):
        """Returns when `path` is answered with 200."""
        ask = f"GET {path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n".encode()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self._process.poll() is not None:
                break
            with contextlib.suppress(OSError):
                with socket.create_connection(("127.0.0.1", self.port), 1) as asking:
                    asking.sendall(ask)
                    if b" 200 " in asking.recv(4096).split(b"\r\n")[0]:
                        return
            time.sleep(0.02)
        sys.exit(f"{self._name} does not serve:\n{self._log.read_text(errors='replace')}")

    def pids(self):
        """Its own and those of its children (nginx works in one)."""
        own = self._process.pid
        children = pathlib.Path(f"/proc/{own}/task/{own}/children").read_text().split()
        return [own, *map(int, children)]

    def cpu_seconds(self):
        ticks = 0
        for pid in self.pids():
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / TICKS_PER_SECOND

    def resident_kib(self):
        text = pathlib.Path(f"/proc/{self._process.pid}/status").read_text()
        return int(re.search(r"^VmRSS:\s*(\d+)", text, re.MULTILINE)[1])

    def stop(self):
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def start_stint(stack, binary, folder, upstream_port, core=None):
    """stint as stint.yaml and resources.yaml say; stopped when `stack` is left."""
    port, metrics_port = free_ports(2)
    environment = {
        "BENCH_PORT": str(port),
        "BENCH_METRICS_PORT": str(metrics_port),
        "BENCH_UPSTREAM_PORT": str(upstream_port),
    }
    command = [pathlib.Path(binary).resolve(), "--config", HERE / "stint.yaml"]
    program = Program(command, port, folder=folder, core=core, environment=environment)
    stack.callback(program.stop)
    program.wait_ready("/readyz")
    return program


def start_nginx(stack, template, folder, core, upstream_port=0):
    """nginx with a configuration of this folder; stopped when `stack` is left."""
    (port,) = free_ports(1)
    text = (HERE / template).read_text()
    values = {"FOLDER": folder, "PORT": port, "UPSTREAM_PORT": upstream_port}
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    configuration = pathlib.Path(folder) / pathlib.Path(template).name
    configuration.write_text(text)
    command = ["nginx", "-e", "stderr", "-p", folder, "-c", configuration]
    program = Program(command, port, folder=folder, core=core)
    stack.callback(program.stop)
    program.wait_ready("/")
    return program
