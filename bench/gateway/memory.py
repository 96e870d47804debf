#!/usr/bin/env python3
"""Resident memory of the gateway: idle, and for each open stream.

    bench/gateway/memory.py [--stint build/release/stint] [--streams 1000]

Each stream is a chat whose upstream has sent a head and an event and then holds still; its client
has read that event. The streams are opened twice: the second time shows what is used again.
"""

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
import time

import processes

EVENT = b'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
CHUNK = b"%x\r\n%s\r\n" % (len(EVENT), EVENT)


async def hold(reader, writer):
    """The upstream: one event, and then nothing until the gateway leaves."""
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        head = await reader.readuntil(b"\r\n\r\n")
        lengths = [
            line.partition(b":")[2]
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        ]
        await reader.readexactly(int(lengths[0]))
        writer.write(HEAD + CHUNK)
        await reader.read()
    writer.close()


async def open_stream(port):
    body = json.dumps(
        {
            "model": "chat",
            "stream": True,
            "messages": [{"role": "user", "content": "What does the word stint mean? " * 8}],
        }
    ).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer sk-bench\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    )
    answer = await asyncio.wait_for(reader.readuntil(EVENT), 30)
    assert answer.startswith(b"HTTP/1.1 200 "), answer
    return writer


def settled_kib(program):
    """The resident memory, once it no longer changes."""
    last, same = program.resident_kib(), 0
    for _ in range(100):
        time.sleep(0.1)
        now = program.resident_kib()
        same = same + 1 if now == last else 0
        last = now
        if same == 5:
            break
    return last


async def measure(program, streams):
    """KiB with `streams` open streams, and after they have ended."""
    writers = []
    for begin in range(0, streams, 50):
        count = min(50, streams - begin)
        writers += await asyncio.gather(*(open_stream(program.port) for _ in range(count)))
    with_streams = await asyncio.to_thread(settled_kib, program)
    for writer in writers:
        writer.transport.abort()
    await asyncio.sleep(1)
    return with_streams, await asyncio.to_thread(settled_kib, program)


async def run(options, folder):
    upstream = await asyncio.start_server(hold, "127.0.0.1", 0, backlog=1024)
    port = upstream.sockets[0].getsockname()[1]
    with contextlib.ExitStack() as stack:
        program = await asyncio.to_thread(
            processes.start_stint, stack, options.stint, folder, port
        )
        idle = await asyncio.to_thread(settled_kib, program)
        print(f"idle: {idle / 1024:.1f} MiB")
        for turn in ("first", "second"):
            with_streams, after = await measure(program, options.streams)
            print(
                f"{options.streams} open streams, {turn} time: {with_streams / 1024:.1f} MiB, "
                f"{(with_streams - idle) / options.streams:.1f} KiB each; "
                f"{after / 1024:.1f} MiB when they have ended"
            )
    upstream.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stint", default=processes.ROOT / "build/release/stint")
    parser.add_argument("--streams", type=int, default=1000)
    options = parser.parse_args()
    processes.end_on_signals()
    processes.allow_files(4 * options.streams + 256)
    with tempfile.TemporaryDirectory(prefix="stint-bench-") as folder:
        asyncio.run(run(options, folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
