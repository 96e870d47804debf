"""An upstream that does exactly what a test tells it, and remembers what it was sent.

A reply is a list of steps, done in order:
  bytes            written at once, in one piece
  float            a pause of so many seconds
  Gate             goes on when the test opens it
  RESET, CLOSE     ends the connection: by a RST, or orderly
  HANG             waits until the peer closes
  a function       called with the request; gives further steps
When a reply is over the connection waits for the next request.
"""

import asyncio
import json
import socket
import struct
import threading
import time

from support.client import Headers
from support.poll import until

RESET = object()
CLOSE = object()
HANG = object()


class Gate:
    """Closed at first; a reply that comes to it waits until it is opened."""

    def __init__(self):
        self._event = threading.Event()

    def open(self):
        self._event.set()

    async def passed(self):
        while not self._event.is_set():
            await asyncio.sleep(0.002)


class Received:
    """A request as it came."""

    def __init__(self, method, target, headers, body, connection):
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
        self.connection = connection  # the same number for requests of one connection
        self._closed_at = None

    def json(self):
        return json.loads(self.body)

    @property
    def closed_at(self):
        """When the peer closed the connection during or after the reply; None while it is open."""
        return self._closed_at

    def wait_closed(self, seconds):
        return until(lambda: self._closed_at, "the gateway closes its upstream connection", seconds)

    def __repr__(self):
        return f"<{self.method} {self.target} {self.headers.lines} {self.body[:200]!r}>"


class _Connection(asyncio.Protocol):
    def __init__(self, mock, number):
        self._mock = mock
        self._number = number
        self._buffer = b""
        self._replies = None
        self._more = asyncio.Event()
        self._gone = asyncio.Event()
        self._current = None

    def connection_made(self, transport):
        self._transport = transport
        self._replies = asyncio.ensure_future(self._serve())
        self._mock.connections.add(self)

    def data_received(self, data):
        self._buffer += data
        self._more.set()

    def eof_received(self):
        self._peer_closed()

    def connection_lost(self, _):
        self._peer_closed()
        self._replies.cancel()
        self._mock.connections.discard(self)

    def _peer_closed(self):
        self._gone.set()
        self._more.set()
        if self._current is not None and self._current._closed_at is None:
            self._current._closed_at = time.monotonic()

    def end(self):
        self._transport.abort()

    async def _until(self, complete):
        while (value := complete()) is None:
            if self._gone.is_set():
                raise ConnectionError("the peer is gone")
            self._more.clear()
            await self._more.wait()
        return value

    def _take_head(self):
        if b"\r\n\r\n" not in self._buffer:
            return None
        head, self._buffer = self._buffer.split(b"\r\n\r\n", 1)
        return head

    def _take_body(self, length):
        if len(self._buffer) < length:
            return None
        body, self._buffer = self._buffer[:length], self._buffer[length:]
        return body

    async def _request(self):
        head = await self._until(self._take_head)
        first, *rest = head.decode("latin-1").split("\r\n")
        headers = Headers([tuple(p.strip() for p in line.split(":", 1)) for line in rest])
        method, target, _ = first.split(" ")
        # The gateway sends bodies with their length.
        length = int(headers.get("content-length", "0"))
        body = await self._until(lambda: self._take_body(length))
        return Received(method, target, headers, body, self._number)

    async def _serve(self):
        try:
            while True:
                self._current = None
                self._current = await self._request()
                reply = self._mock._reply_to(self._current)
                await self._play(reply)
        except (ConnectionError, asyncio.CancelledError):
            pass

    async def _play(self, steps):
        for step in steps:
            if isinstance(step, bytes):
                self._transport.write(step)
                await asyncio.sleep(0)
            elif isinstance(step, float):
                await asyncio.sleep(step)
            elif isinstance(step, Gate):
                await step.passed()
            elif step is HANG:
                await self._gone.wait()
            elif step is RESET:
                on = struct.pack("ii", 1, 0)
                raw = self._transport.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, on)
                self._transport.abort()
                return
            elif step is CLOSE:
                self._transport.close()
                return
            else:
                await self._play(step(self._current))


class MockUpstream:
    """Listens on a free port of loopback, on a thread of its own, until `stop`."""

    def __init__(self, tls=None):
        self.received = []
        self.connections = set()
        self._default = [b"HTTP/1.1 500 No Script\r\nContent-Length: 0\r\n\r\n"]
        self._queue = []
        self._lock = threading.Lock()
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        assert started.wait(10)

    def _run(self, started):
        asyncio.set_event_loop(self._loop)
        numbers = iter(range(1, 1 << 62))
        self._server = self._loop.run_until_complete(
            self._loop.create_server(
                lambda: _Connection(self, next(numbers)), "127.0.0.1", 0, ssl=self._tls, backlog=512
            )
        )
        self.port = self._server.sockets[0].getsockname()[1]
        started.set()
        self._loop.run_forever()
        for connection in list(self.connections):
            connection.end()
        self._server.close()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def stop(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    @property
    def origin(self):
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def always(self, *steps):
        """The reply to every request that has none of its own."""
        with self._lock:
            self._default = list(steps)

    def once(self, *steps):
        """The reply to one request: the next that has none yet."""
        with self._lock:
            self._queue.append(list(steps))

    def _reply_to(self, received):
        with self._lock:
            self.received.append(received)
            return self._queue.pop(0) if self._queue else self._default

    @property
    def last(self):
        return self.received[-1]

    def wait_for(self, count):
        """The request number `count`, from 1, as soon as it has come."""
        until(lambda: len(self.received) >= count, f"request {count} reaches the upstream")
        return self.received[count - 1]


def refusing_port():
    """A port of loopback that refuses connections, as long as the returned socket is open."""
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    return holder, holder.getsockname()[1]


def silent_port():
    """A port of loopback that does not answer attempts to connect, as long as all are open."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    port = listener.getsockname()[1]
    sockets = [listener]
    # The queue of those that nobody accepts is full after a few.
    for _ in range(4):
        filler = socket.socket()
        filler.setblocking(False)
        filler.connect_ex(("127.0.0.1", port))
        sockets.append(filler)
    return sockets, port
