"""A real Redis of the tests' own: its process, a client to look inside, and what stint keeps there.

Whatever is done to it (stopped, killed, restarted) is done to this process alone.
"""

import contextlib
import pathlib
import signal
import socket
import struct
import subprocess
from typing import NamedTuple

from support.gateway import free_port
from support.poll import until

PREFIX = "stint:rl:1:"
ALGORITHMS = ("fixed_window", "sliding_window", "sliding_log", "token_bucket", "concurrency")
# The numbers of a limit behind its name and its quota: see src/store/redis/lua/decide.lua.
_FIELDS = {
    "fixed_window": ("start", "used"),
    "sliding_window": ("start", "current", "previous"),
    "sliding_log": ("used", "count", "last"),
    "token_bucket": ("capacity", "last", "level", "rest", "fills"),
    "concurrency": (),
}


class ReplyError(Exception):
    """Redis answered with an error."""


class Lease(NamedTuple):
    holder: bytes
    expires: float  # Redis's time, in seconds


def parse_bucket(raw):
    """The limits of a bucket, {algorithm: {"quota": ..., "used": ...}}; times in microseconds."""
    version, flags, _, count = struct.unpack_from("<BBdB", raw)
    assert (version, flags) == (1, 0), raw
    at, limits = 11, {}
    for _ in range(count):
        name, quota = struct.unpack_from("<dd", raw, at)
        algorithm = ALGORITHMS[int(name) % 8]
        fields = _FIELDS[algorithm]
        values = struct.unpack_from(f"<{len(fields)}d", raw, at + 16)
        at += 16 + 8 * len(fields)
        limits[algorithm] = {"quota": int(quota), **dict(zip(fields, map(int, values)))}
    return limits


class _Client:
    """As much of a client as looking and disturbing needs. Replies are bytes, int, list or None."""

    def __init__(self, port, password):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=5)
        self._file = self._socket.makefile("rb")
        if password:
            self.ask("AUTH", password)

    def ask(self, *words):
        parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        lines = [b"*%d\r\n" % len(parts), *(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)]
        self._socket.sendall(b"".join(lines))
        return self._reply()

    def _reply(self):
        line = self._file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("Redis closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise ReplyError(rest.decode())
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if int(rest) < 0:
            return None
        if kind == b"$":
            return self._file.read(int(rest) + 2)[:-2]
        assert kind == b"*", line
        return [self._reply() for _ in range(int(rest))]

    def close(self):
        self._file.close()
        self._socket.close()


class RedisServer:
    """A redis-server without persistence. `options` are those of its command line."""

    def __init__(self, folder, *options, password=None, wait=True):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self.settings = {"url": self.url}  # of ratelimit.redis
        self.shards = 1  # servers that count, each for itself
        self._password = password
        self._options = [*options, *(["--requirepass", password] if password else [])]
        self._process = None
        self._client = None
        if wait:
            self.start()

    # --- its process

    def start(self):
        """Starts it, empty, on the port it always has; returns when it answers."""
        assert not self.running()
        with (self.folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        until(self._answers, "redis-server answers", 10)

    def _command(self):
        return [
            "redis-server",
            *("--bind", "127.0.0.1", "--port", str(self.port)),
            *("--save", "", "--appendonly", "no", "--dir", str(self.folder)),
            *self._options,
        ]

    def running(self):
        return self._process is not None and self._process.poll() is None

    def _answers(self):
        assert self.running(), (self.folder / "redis.log").read_text()
        try:
            return self.ask("PING") == b"PONG"
        except OSError:
            return False

    def kill(self):
        self._process.kill()
        self._process.wait(10)
        self._forget_client()

    def restart(self):
        """Another one in its place, at once; nothing is left of what the first one knew."""
        self.kill()
        self.start()

    @contextlib.contextmanager
    def paused(self):
        """Meanwhile it is stopped (SIGSTOP): connections stay, and nobody answers."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def stop(self):
        if self.running():
            self._process.send_signal(signal.SIGCONT)
            self.kill()

    # --- looking inside

    def ask(self, *words):
        """One command; over a new connection if the last one was lost."""
        kept = self._client is not None
        if not kept:
            self._client = _Client(self.port, self._password)
        try:
            return self._client.ask(*words)
        except OSError:
            self._forget_client()
            if not kept:
                raise
        return self.ask(*words)

    def _forget_client(self):
        if self._client is not None:
            self._client.close()
            self._client = None

    def keys(self, policy=None):
        """All keys, or those of the buckets of a policy."""
        begins = "" if policy is None else (f"{PREFIX}{{{policy}}}", f"{PREFIX}{{{policy}:")
        keys = sorted(key.decode() for key in self.ask("KEYS", "*"))
        return [key for key in keys if key.startswith(begins)]

    def raw_bucket(self, policy):
        """What the key of the policy's one bucket holds; None if there is none."""
        found = [key for key in self.keys(policy) if key.endswith("}")]
        assert len(found) < 2, found
        return self.ask("GET", found[0]) if found else None

    def bucket(self, policy):
        """The one bucket of a policy, as `parse_bucket` says; None if there is none."""
        raw = self.raw_bucket(policy)
        return parse_bucket(raw) if raw else None

    def used(self, policy, algorithm="fixed_window"):
        bucket = self.bucket(policy)
        return bucket[algorithm]["used"] if bucket else 0

    def leases(self, policy):
        """All that are written down for a policy, also those that are over."""
        found = []
        for key in self.keys(policy):
            if not key.endswith(":leases"):
                continue
            pairs = iter(self.ask("ZRANGE", key, 0, -1, "WITHSCORES"))
            found += [Lease(holder, int(expires) / 1e6) for holder, expires in zip(pairs, pairs)]
        return found

    def clients(self):
        """How many connections stint has."""
        return self.ask("CLIENT", "LIST").count(b"name=stint ")

    def calls(self, command):
        """How often a command was run since the start."""
        for line in self.ask("INFO", "commandstats").decode().split():
            if line.startswith(f"cmdstat_{command}:"):
                return int(line.partition("calls=")[2].partition(",")[0])
        return 0

    def assert_all_expire(self):
        eternal = [key for key in self.keys() if self.ask("PTTL", key) == -1]
        assert not eternal, f"without an expiry: {eternal}"
