"""`stint demo`: what it prints works when it is pasted into a shell."""

import os
import re
import signal
import socket
import subprocess
import time

import pytest

from support.gateway import BINARY
from support.poll import room_in_window, until

FIRST_PORT = 3000


class Demo:
    def __init__(self, folder):
        self._output = folder / "demo.txt"
        with self._output.open("wb") as out:
            self.process = subprocess.Popen(
                [BINARY, "demo"],
                env={"PATH": os.environ["PATH"]},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        until(lambda: "Ctrl-C" in self.text() or self.process.poll() is not None, "it is ready", 15)
        assert self.process.poll() is None, self.text()
        self.port = int(re.search(r"http://127\.0\.0\.1:(\d+)", self.text())[1])

    def text(self):
        return self._output.read_text()

    def lines(self, part):
        """The curl lines that have this in them."""
        found = [line.strip() for line in self.text().splitlines() if "curl " in line]
        return [line for line in found if part in line]

    def line(self, part):
        (line,) = self.lines(part)
        return line

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(10) == 0, self.text()


@pytest.fixture
def demo(tmp_path):
    running = Demo(tmp_path)
    yield running
    running.stop()


def paste(line):
    """(head, body) of the answer to a line that was pasted into a shell."""
    done = subprocess.run(["bash", "-c", line], capture_output=True, timeout=20)
    assert done.returncode == 0, done.stderr
    head, separator, body = done.stdout.decode().partition("\r\n\r\n")
    return (head, body) if separator else ("", head)


def status_of(head):
    return int(head.split(" ")[1])


CHAT = '"messages"'


def chat_line(demo):
    (line,) = [line for line in demo.lines(CHAT) if '"stream"' not in line]
    return line


def test_chat_is_200_five_times_and_then_429_with_retry_after(demo):
    room_in_window(60, 10)
    line = chat_line(demo)
    answers = [paste(line) for _ in range(6)]
    assert [status_of(head) for head, _ in answers] == [200] * 5 + [429]
    assert "chat.completion" in answers[0][1]
    refusal, body = answers[5]
    wait = int(re.search(r"(?im)^retry-after: (\d+)\r?$", refusal)[1])
    assert 1 <= wait <= 60
    assert "rate_limit_exceeded" in body
    # Each decision shows, as a line to read.
    until(lambda: demo.text().count("POST /v1/chat/completions  ") >= 6, "all are shown")
    assert demo.text().count("  admitted; ") >= 5
    assert re.search(r"refused by 5 requests per 60 s .*come back in \d+ ms", demo.text())


def test_stream_arrives_event_by_event(demo):
    line = demo.line('"stream":true')
    process = subprocess.Popen(["bash", "-c", line], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    arrivals = []
    received = b""
    while data := os.read(process.stdout.fileno(), 65536):
        received += data
        arrivals.append((time.monotonic(), data.count(b"data: ")))
    assert process.wait(10) == 0
    process.stdout.close()
    process.stderr.close()
    assert received.startswith(b"HTTP/1.1 200")
    assert received.endswith(b"data: [DONE]\n\n")
    events = received.count(b"data: ")
    assert events >= 5
    # In as many pieces, over as much time as the upstream takes.
    assert len([at for at, count in arrivals if count]) >= events - 2
    assert arrivals[-1][0] - arrivals[0][0] > 0.1 * (events - 3)


def test_slot_is_taken_while_a_stream_runs(demo):
    stream = subprocess.Popen(
        ["bash", "-c", demo.line('"stream":true')],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert b"data: " in wait_for_data(stream)
    head, body = paste(chat_line(demo))
    assert status_of(head) == 429
    assert "concurrency_limit_exceeded" in body
    stream.communicate(timeout=20)
    assert status_of(paste(chat_line(demo))[0]) == 200


def wait_for_data(process):
    received = b""
    while b"data: " not in received:
        data = os.read(process.stdout.fileno(), 65536)
        assert data, received
        received += data
    return received


def test_embeddings_and_models(demo):
    head, body = paste(demo.line("/v1/embeddings"))
    assert status_of(head) == 200
    assert '"embedding"' in body
    _, listed = paste(demo.line("/v1/models"))
    assert "demo-chat" in listed and "demo-embed" in listed


def test_plain_route_is_limited(demo):
    line = demo.line("/hello")
    answers = [paste(line) for _ in range(4)]
    assert [status_of(head) for head, _ in answers] == [200, 200, 200, 429]
    assert "hello from the upstream" in answers[0][1]
    assert re.search(r"(?im)^retry-after: \d+", answers[3][0])


def test_hello_is_never_answered_more_often_than_said(demo):
    """Three in any ten seconds: a fourth only when the first is ten seconds ago."""
    line = demo.line("/hello")
    begin = time.monotonic()
    answers = [paste(line) for _ in range(4)]
    heads = "".join(head for head, _ in answers)
    waits = [int(ms) for ms in re.findall(r"(?im)^retry-after-ms: (\d+)", heads)]
    assert len(waits) == 1
    assert waits[0] / 1000 > 10 - (time.monotonic() - begin)


def test_metrics_are_where_it_says(demo):
    paste(demo.line("/hello"))
    _, metrics = paste(demo.line("/metrics"))
    assert "# TYPE stint_decisions_total counter" in metrics


def test_request_without_limits_is_not_called_admitted(demo):
    head, _ = paste(f"curl -i http://127.0.0.1:{demo.port}/nowhere")
    assert status_of(head) == 404
    paste(demo.line("/hello"))
    until(lambda: "GET /hello  admitted; " in demo.text(), "decisions are shown")
    assert "GET /nowhere  admitted" not in demo.text()


def test_taken_port_gives_the_next_free_one(tmp_path):
    taken = []
    try:
        # Whoever holds it: this test, or another program.
        for port in (FIRST_PORT, FIRST_PORT + 1):
            one = socket.socket()
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.append(one)
            try:
                one.bind(("127.0.0.1", port))
                one.listen()
            except OSError:
                pass
        running = Demo(tmp_path)
        try:
            assert FIRST_PORT + 2 <= running.port < FIRST_PORT + 100
            assert status_of(paste(chat_line(running))[0]) == 200
        finally:
            running.stop()
    finally:
        for one in taken:
            one.close()


def test_two_demos_do_not_meet(tmp_path):
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    demos = [Demo(folder) for folder in folders]
    try:
        assert demos[0].port != demos[1].port
        for running in demos:
            assert status_of(paste(chat_line(running))[0]) == 200
    finally:
        for running in demos:
            running.stop()
