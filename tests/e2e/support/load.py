"""Many requests over kept connections: as fast as they go, or so many a second."""

import asyncio
import re
import threading
import time
from typing import NamedTuple, Optional

from support.client import render
from support.gateway import KEY, chat_body

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


def chat_request(key=KEY, **more):
    """The bytes of a chat that is not streamed."""
    return render("POST", "/v1/chat/completions", body=chat_body(**more), key=key)


class Sample(NamedTuple):
    """One request and what came of it. Instants are those of the wall clock, in seconds."""

    sent: float
    received: float
    replica: int  # the place of its gateway
    status: Optional[int]  # None: the connection ended
    head: bytes
    number: int = 0  # of the request in its load

    def header(self, name):
        found = re.search(rb"\r\n%s: *([^\r]*)" % name.encode(), self.head, re.IGNORECASE)
        return found[1].decode() if found else None

    @property
    def seconds(self):
        return self.received - self.sent


class _Wire(asyncio.Protocol):
    """One connection; one request at a time."""

    def __init__(self, replica):
        self.replica = replica
        self._buffer = b""
        self._answer = None

    def connection_made(self, transport):
        self._transport = transport

    def ask(self, request):
        """A future of its sample."""
        self._buffer = b""
        self._answer = asyncio.get_running_loop().create_future()
        self._sent = time.time()
        self._transport.write(request)
        return self._answer

    def data_received(self, data):
        self._buffer += data
        head, blank, body = self._buffer.partition(b"\r\n\r\n")
        if blank and len(body) >= int(_LENGTH.search(head)[1]):
            self._end(int(head[9:12]), head)

    def connection_lost(self, _):
        self._end(None, b"")

    def _end(self, status, head):
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            answer.set_result(Sample(self._sent, time.time(), self.replica, status, head))

    def close(self):
        self._transport.abort()


async def _open(gateways, replica):
    loop = asyncio.get_running_loop()
    port = gateways[replica].port
    _, wire = await loop.create_connection(lambda: _Wire(replica), "127.0.0.1", port)
    return wire


def burst(gateways, request, count, connections=12):
    """`count` requests as fast as they go, over so many connections to the gateways in turn."""

    async def worker(replica, left, samples):
        wire = await _open(gateways, replica)
        while left:
            left.pop()
            samples.append(await wire.ask(request))
        wire.close()

    async def run():
        left, samples = [None] * count, []
        places = [place % len(gateways) for place in range(connections)]
        await asyncio.gather(*(worker(place, left, samples) for place in places))
        return samples

    return asyncio.run(run())


def at_once(gateways, request, count):
    """`count` requests that are all under way together, to the gateways in turn."""

    async def run():
        wires = [await _open(gateways, place % len(gateways)) for place in range(count)]
        samples = await asyncio.gather(*[wire.ask(request) for wire in wires])
        for wire in wires:
            wire.close()
        return samples

    return asyncio.run(run())


class Load:
    """So many requests a second to the gateways in turn, while the block runs; none is left out.

    `request`: its bytes, or a function of its number that gives them.
    """

    def __init__(self, gateways, request, rate):
        self.samples = []
        self.resting = set()  # places of gateways that get nothing; the next one gets theirs
        self.under_way = [0] * len(gateways)  # requests that were not answered yet
        self._gateways = gateways
        self._request = request
        self._rate = rate
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive()

    async def _run(self):
        idle = [[] for _ in self._gateways]
        asking, begun, count = set(), time.monotonic(), 0
        while not self._stop.is_set():
            while count < (time.monotonic() - begun) * self._rate:
                replica = self._place(count)
                self.under_way[replica] += 1
                task = asyncio.ensure_future(self._ask(replica, count, idle[replica]))
                count += 1
                asking.add(task)
                task.add_done_callback(asking.discard)
            await asyncio.sleep(0.002)
        await asyncio.gather(*asking)
        for _, wire in sum(idle, []):
            wire.close()

    def _place(self, count):
        for turn in range(len(self._gateways)):
            place = (count + turn) % len(self._gateways)
            if place not in self.resting:
                return place
        raise AssertionError("all gateways rest")

    async def _ask(self, replica, number, idle):
        port = self._gateways[replica].port
        while idle and idle[-1][0] != port:  # of one that was replaced
            idle.pop()
        wire = idle.pop()[1] if idle else await _open(self._gateways, replica)
        request = self._request(number) if callable(self._request) else self._request
        sample = (await wire.ask(request))._replace(number=number)
        self.samples.append(sample)
        self.under_way[replica] -= 1
        if sample.status is not None:
            idle.append((port, wire))

    def statuses(self):
        return {sample.status for sample in self.samples}

    def admitted(self):
        return sum(sample.status == 200 for sample in self.samples)
