"""Requests that can be read in two ways, or that are too large or too slow: refused while they are
read, the connection closed, and nothing of them reaches an upstream."""

import threading
import time

import pytest

from support.client import Closed
from support.gateway import KEY, chat_body, resources
from support.poll import until

HOST = "Host: gateway.test\r\n"
HIDDEN = "POST /files/hidden HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"


def post(*fields, body="", version="1.1", host=HOST):
    lines = "".join(f"{field}\r\n" for field in fields)
    return f"POST /files/x HTTP/{version}\r\n{host}{lines}\r\n{body}"


def chunks(text):
    return post("Transfer-Encoding: chunked", body=text)


AMBIGUOUS = {
    # two ways to tell where the body ends
    "length and chunked": post("Content-Length: 5", "Transfer-Encoding: chunked", body="0\r\n\r\n"),
    "chunked and length": post("Transfer-Encoding: chunked", "Content-Length: 5", body="0\r\n\r\n"),
    "two equal lengths": post("Content-Length: 5", "Content-Length: 5", body="hello"),
    "two different lengths": post("Content-Length: 5", "Content-Length: 6", body="hello!"),
    "list of lengths": post("Content-Length: 5,5", body="hello"),
    "list with a space": post("Content-Length: 5, 5", body="hello"),
    # lengths that are no numbers
    "length with a sign": post("Content-Length: +5", body="hello"),
    "negative length": post("Content-Length: -5", body="hello"),
    "hexadecimal length": post("Content-Length: 0x5", body="hello"),
    "empty length": post("Content-Length:", body="hello"),
    "blank length": post("Content-Length: \t ", body="hello"),
    "length with text": post("Content-Length: 5 bytes", body="hello"),
    # encodings
    "unknown encoding": post("Transfer-Encoding: xchunked", body="0\r\n\r\n"),
    "identity after chunked": post("Transfer-Encoding: chunked, identity", body="0\r\n\r\n"),
    "identity before chunked": post("Transfer-Encoding: identity, chunked", body="0\r\n\r\n"),
    "gzip before chunked": post("Transfer-Encoding: gzip, chunked", body="0\r\n\r\n"),
    "chunked in a list twice": post("Transfer-Encoding: chunked, chunked", body="0\r\n\r\n"),
    "chunked in two lines": post(
        "Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body="0\r\n\r\n"
    ),
    "encoding with a parameter": post("Transfer-Encoding: chunked;q=1", body="0\r\n\r\n"),
    "encoding in quotes": post('Transfer-Encoding: "chunked"', body="0\r\n\r\n"),
    "empty encoding": post("Transfer-Encoding:", body="0\r\n\r\n"),
    "encoding after a vertical tab": post("Transfer-Encoding: \x0bchunked", body="0\r\n\r\n"),
    "chunked on HTTP/1.0": post("Transfer-Encoding: chunked", body="0\r\n\r\n", version="1.0"),
    # lines
    "space before the colon": post("Content-Length : 5", body="hello"),
    "tab before the colon": post("Transfer-Encoding\t: chunked", body="0\r\n\r\n"),
    "space before the name": post("X-A: 1", " Content-Length: 5", body="hello"),
    "folded line": post("Content-Length: 5", "X-A: 1", "\tfolded", body="hello"),
    "empty name": post("Content-Length: 5", ": nothing", body="hello"),
    "no colon": post("Content-Length: 5", "nothing", body="hello"),
    "null in a value": post("Content-Length: 5", "X-A: a\0b", body="hello"),
    "null in a name": post("Content-Length: 5", "X\0A: ab", body="hello"),
    "bare CR in a value": post("Content-Length: 5", "X-A: a\rContent-Length: 0", body="hello"),
    "bare LF as a line end": "POST /files/x HTTP/1.1\nHost: x\nContent-Length: 5\n\nhello",
    "bare LF within": post("X-A: 1\nContent-Length: 5", body="hello"),
    # the first line
    "no version": "POST /files/x\r\n" + HOST + "\r\n",
    "two spaces": "POST  /files/x HTTP/1.1\r\n" + HOST + "\r\n",
    "space in the target": "POST /files/x y HTTP/1.1\r\n" + HOST + "\r\n",
    "control byte in the target": "POST /files/\x01x HTTP/1.1\r\n" + HOST + "\r\n",
    "method with a colon": "PO:ST /files/x HTTP/1.1\r\n" + HOST + "\r\n",
    # hosts
    "no host": post("Content-Length: 0", host=""),
    "two hosts": post("Host: other", "Content-Length: 0"),
    "host that is none": post("Content-Length: 0", host="Host: a b\r\n"),
    # chunks
    "chunk size with a sign": chunks("+5\r\nhello\r\n0\r\n\r\n"),
    "chunk size with 0x": chunks("0x5\r\nhello\r\n0\r\n\r\n"),
    "negative chunk size": chunks("-1\r\nhello\r\n0\r\n\r\n"),
    "empty chunk size": chunks("\r\nhello\r\n0\r\n\r\n"),
    "chunk size after a space": chunks(" 5\r\nhello\r\n0\r\n\r\n"),
    "chunk size beyond 64 bits": chunks("10000000000000005\r\nhello\r\n0\r\n\r\n"),
    "chunk longer than its size": chunks("5\r\nhello!\r\n0\r\n\r\n"),
    "chunk with a bare LF": chunks("5\nhello\r\n0\r\n\r\n"),
    "chunk that ends with LF": chunks("5\r\nhello\n0\r\n\r\n"),
    "trailer without a colon": chunks("5\r\nhello\r\n0\r\nnothing\r\n\r\n"),
}


@pytest.fixture
def gateway(start, upstream):
    routes = [{"name": "files", "match": {"path_prefix": "/files"}, "upstream": upstream.origin}]
    return start(resources(upstream.origin, routes=routes))


class TestAmbiguous:
    def test_is_refused_and_closed_and_forwarded_nowhere(self, gateway, upstream):
        wrong = {}
        for name, text in AMBIGUOUS.items():
            with gateway.connect(timeout=3) as connection:
                connection.send((text + HIDDEN).encode("latin-1"))
                try:
                    received = connection.rest()
                except TimeoutError:
                    wrong[name] = "not closed"
                    continue
            if not received.startswith(b"HTTP/1.1 400 ") or received.count(b"HTTP/1.1 ") != 1:
                wrong[name] = received
        assert wrong == {}
        assert upstream.received == []
        assert gateway.chat().status == 200

    @pytest.mark.parametrize(
        "text",
        [
            post("Content-Length: 5", body="hello"),
            post("content-length:5", body="hello"),
            post("Content-Length: \t5 \t", body="hello"),
            post("Transfer-Encoding: chunked", body="5\r\nhello\r\n0\r\n\r\n"),
            post("transfer-encoding:CHUNKED", body="5\r\nhello\r\n0\r\n\r\n"),
            post("Transfer-Encoding: chunked", body='05;a="b"\r\nhello\r\n000\r\n\r\n'),
            "\r\n" + post("Content-Length: 5", body="hello"),
        ],
        ids=repr,
    )
    def test_unusual_and_clear_is_accepted(self, gateway, upstream, text):
        with gateway.connect() as connection:
            connection.send(text.encode())
            assert connection.answer("POST").read().status == 200
            # The next request of the connection begins where this one ended.
            connection.ask("GET", "/livez")
            assert connection.answer().read().status == 200
        assert upstream.last.body == b"hello"
        assert len(upstream.received) == 1


LIMITS = {
    "proxy": {
        "request_line_limit_bytes": 2048,
        "header_limit_bytes": 16_384,
        "header_limit_count": 50,
        "request_body_limit_bytes": 20_000,
        "header_timeout_ms": 700,
        "body_timeout_ms": 700,
        "idle_timeout_ms": 700,
    }
}


@pytest.fixture
def limited(start, upstream):
    routes = [{"name": "files", "match": {"path_prefix": "/files"}, "upstream": upstream.origin}]
    return start(resources(upstream.origin, routes=routes), LIMITS)


def refused(gateway, *parts):
    """The status that a request sent in these parts is refused with; the connection is closed."""
    with gateway.connect() as connection:
        try:
            for part in parts:
                connection.send(part)
        except ConnectionError:
            pass  # refused before its end
        answer = connection.answer("POST").read()
        assert connection.closed()
        return answer.status


GET = f"GET /files/x HTTP/1.1\r\n{HOST}".encode()


class TestTooLarge:
    def test_line_is_414(self, limited, upstream):
        assert (
            refused(
                limited, b"GET /files/" + b"a" * 4096 + b" HTTP/1.1\r\n" + HOST.encode() + b"\r\n"
            )
            == 414
        )
        # Also without an end.
        assert refused(limited, b"GET /files/" + b"a" * 4096) == 414
        assert upstream.received == []

    def test_headers_are_431(self, limited, upstream):
        assert refused(limited, GET + b"X-A: " + b"a" * 20_000 + b"\r\n\r\n") == 431
        assert refused(limited, GET + b"X-A: " + b"a" * 20_000) == 431
        assert refused(limited, GET + b"X: 1\r\n" * 60 + b"\r\n") == 431
        assert refused(limited, GET, *[b"X: 1\r\n"] * 100_000) == 431
        assert upstream.received == []

    def test_body_is_413(self, limited, upstream):
        path = b"POST /files/x HTTP/1.1\r\n" + HOST.encode()
        assert refused(limited, path + b"Content-Length: 20001\r\n\r\n") == 413
        for length in (b"99999999999", b"18446744073709551621", b"9" * 100):
            assert refused(limited, path + b"Content-Length: " + length + b"\r\n\r\n") == 413
        chunked = path + b"Transfer-Encoding: chunked\r\n\r\n"
        assert refused(limited, chunked + b"4e21\r\n" + b"x" * 20_001) == 413
        assert refused(limited, chunked, *[b"400\r\n" + b"x" * 1024 + b"\r\n"] * 100) == 413
        assert refused(limited, chunked, *[b"1\r\nx\r\n"] * 20_001) == 413
        assert upstream.received == []

    def test_chat_is_413(self, limited, upstream):
        assert limited.chat("x" * 30_000).status == 413
        assert upstream.received == []

    def test_what_fits_is_let_through(self, limited, upstream):
        line = b"GET /files/" + b"a" * 2000 + b" HTTP/1.1\r\n" + HOST.encode()
        with limited.connect() as connection:
            connection.send(line + b"X-A: " + b"a" * 16_000 + b"\r\n\r\n")
            assert connection.answer().read().status == 200
        assert limited.request("POST", "/files/x", body=b"x" * 20_000).status == 200


class TestTooSlow:
    def drip(self, gateway, beginning, drop):
        """The status, when one byte is sent each 100 ms; and how long it took."""
        with gateway.connect() as connection:
            begun = time.monotonic()
            connection.send(beginning)
            while not connection.has_data(0.1) and time.monotonic() - begun < 5:
                connection.send(drop)
            status = connection.answer("POST").read().status
            took = time.monotonic() - begun
            assert connection.closed()
            return status, took

    @pytest.mark.parametrize(
        "beginning",
        [
            b"GET /files/",
            GET + b"X-A: ",
            b"POST /files/x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
        ],
        ids=["line", "headers", "body"],
    )
    def test_is_408(self, limited, upstream, beginning):
        status, took = self.drip(limited, beginning, b"a")
        assert status == 408
        assert 0.5 < took < 2.5
        assert upstream.received == []

    def test_chat_body_is_408_and_frees_its_slot(self, start, upstream):
        gateway = start(resources(upstream.origin, key_limit={"concurrency": 1}), LIMITS)
        head = f"POST /v1/chat/completions HTTP/1.1\r\n{HOST}Authorization: Bearer {KEY}\r\n"
        status, _ = self.drip(gateway, f"{head}Content-Length: 1000\r\n\r\n".encode(), b" ")
        assert status == 408
        assert gateway.chat().status == 200
        gateway.wait_idle()

    def test_idle_connection_is_closed_silently(self, limited):
        with limited.connect() as connection:
            connection.ask("GET", "/livez").answer().read()
            assert connection.closed(3)
        with limited.connect() as connection:
            assert connection.closed(3)


class TestMemory:
    """Default limits: a line of 8 KiB, headers of 32 KiB."""

    CAP = (8 + 32) * 1024
    EACH = CAP + 64 * 1024
    CONNECTIONS = 50

    def assert_bounded(self, gateway, before):
        growth = gateway.peak_bytes() - before
        assert growth <= self.CONNECTIONS * self.EACH, f"{growth} bytes"

    def warm(self, gateway):
        """Memory after the first requests, not before them."""
        for _ in range(20):
            assert gateway.chat().status == 200
        return gateway.peak_bytes()

    def test_endless_lines(self, gateway, upstream):
        """50 connections, each offering 100 MB without a line end."""
        before = self.warm(gateway)
        statuses = []
        offered = memoryview(b"a" * 1_000_000)

        def offer(start):
            with gateway.connect() as connection:
                connection.send(start)
                try:
                    for _ in range(100):
                        connection.send(offered)
                except ConnectionError:
                    pass
                try:
                    statuses.append(connection.answer().status)
                except Closed:
                    statuses.append("closed")

        starts = [b"GET /", GET + b"X-A: "]
        threads = [
            threading.Thread(target=offer, args=(starts[n % 2],)) for n in range(self.CONNECTIONS)
        ]
        for thread in threads:
            thread.start()
        # Others are served meanwhile.
        assert gateway.chat().status == 200
        for thread in threads:
            thread.join(20)
        assert len(statuses) == self.CONNECTIONS
        # Whoever goes on sending may have its answer destroyed by a reset; nobody has another one.
        assert set(statuses) <= {414, 431, "closed"}
        self.assert_bounded(gateway, before)
        assert len(upstream.received) == 21

    def test_heads_that_are_held_open(self, gateway):
        """The most that is let in without an end, on each of 50 connections at once."""
        before = self.warm(gateway)
        connections = []
        head = b"GET /" + b"a" * 8000 + b" HTTP/1.1\r\n" + HOST.encode() + b"X-A: " + b"b" * 32_000
        for _ in range(self.CONNECTIONS):
            connections.append(gateway.connect().send(head))
        assert gateway.chat().status == 200
        self.assert_bounded(gateway, before)
        resident = gateway.resident_bytes()
        for connection in connections:
            connection.close()
        handles = gateway.handles
        until(lambda: handles() < self.CONNECTIONS, "the connections are closed")
        assert gateway.resident_bytes() <= resident

    def test_again_and_again_it_does_not_grow(self, gateway):
        self.warm(gateway)
        resident = []
        for _ in range(4):
            for _ in range(self.CONNECTIONS):
                assert refused(gateway, GET + b"X-A: " + b"a" * 40_000) == 431
            resident.append(gateway.resident_bytes())
        assert resident[-1] - resident[0] < 1_000_000, resident

    def test_idle_connections_are_cheap(self, gateway):
        before = self.warm(gateway)
        connections = [gateway.connect() for _ in range(500)]
        for connection in connections:
            connection.ask("GET", "/livez")
        for connection in connections:
            assert connection.answer().read().status == 200
        assert gateway.peak_bytes() - before < len(connections) * 40 * 1024
        for connection in connections:
            connection.close()


def test_flood_of_deep_json_is_refused(gateway, upstream):
    body = chat_body(tools=[])
    for deep in (b'{"model":"chat","messages":' + b"[" * 200_000, b'{"a":' * 100_000):
        assert gateway.post("/v1/chat/completions", deep).status == 400
    assert upstream.received == []
    assert gateway.post("/v1/chat/completions", body).status == 200


def test_refusals_are_counted_and_logged_with_their_status(start, upstream):
    """Those that no handler sees, and those of bodies, which the limits have charged already."""
    routes = [
        {
            "name": "files",
            "match": {"path_prefix": "/files"},
            "upstream": upstream.origin,
            "rate_limit": {"rpd": 100},
        }
    ]
    settings = {**LIMITS, "observability": {"access_log": True}}
    gateway = start(resources(upstream.origin, routes=routes), settings)
    unread = {
        400: b"GET /\x01 HTTP/1.1\r\n\r\n",
        408: GET,
        413: b"POST /files/x HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\n",
        414: b"GET /" + b"a" * 4096,
        417: GET + b"Expect: magic\r\n\r\n",
        431: GET + b"X-A: " + b"a" * 20_000,
        505: b"GET / HTTP/2.0\r\n\r\n",
    }
    for status, text in unread.items():
        assert refused(gateway, text) == status
    chunked = b"POST /files/b?q HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    bodies = {
        400: chunked + b"zz\r\n",
        408: chunked + b"5\r\nhel",
        413: chunked + b"4e21\r\n" + b"x" * 20_001,
    }
    for n, (status, text) in enumerate(bodies.items(), 1):
        with gateway.connect() as connection:
            connection.send(text)
            answer = connection.answer("POST").read()
            assert answer.status == status
            assert "x-request-id" in answer.headers
            assert answer.headers["x-ratelimit-remaining"] == str(100 - n)
            assert answer.headers["connection"] == "close"
            assert connection.closed()

    gateway.wait_idle()
    requests = "stint_requests_total"
    assert gateway.metric(requests, status="none") == 0
    assert gateway.metric(requests, status="4xx") == len(unread) - 1 + len(bodies)
    assert gateway.metric(requests, status="5xx") == 1
    gateway.wait_log(
        *(f" request route=none status={status} " for status in unread),
        *(f"method=POST route=files path=/files/b status={status} " for status in bodies),
    )


def test_the_log_has_the_path(start, upstream):
    gateway = start(resources(upstream.origin), {"observability": {"access_log": True}})
    gateway.request("GET", "/a/../nothing?secret=1")
    gateway.request("GET", "/v1/chat/completions?x")
    gateway.request("GET", "/" + "n" * 1000)
    log = gateway.wait_log(
        "route=none path=/nothing status=404",
        "path=/v1/chat/completions status=405",
        f"path=/{'n' * 255} status=404",
    )
    assert "secret" not in log
