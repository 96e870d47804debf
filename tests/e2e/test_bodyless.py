"""Answers that have no body by their nature end at once, whatever their headers promise."""

import pytest

from support.client import Timed
from support.gateway import KEY, chat_body, limit, resources
from support.openai_shapes import completion, head, usage, whole

SHORT = {"upstream": {"timeout_ms": 3000, "stream_timeout_ms": 3000}}


@pytest.fixture
def gateway(start, upstream):
    routes = [
        {
            "name": "files",
            "match": {"path_prefix": "/files"},
            "upstream": upstream.origin,
            "rate_limit": [limit("concurrency", 1), limit("requests", 1000, "1d")],
        }
    ]
    return start(resources(upstream.origin, routes=routes), SHORT)


# The upstream keeps its connection open: only the rules of HTTP tell that these are complete.
BODYLESS = {
    "HEAD with a length": ("HEAD", head(200, length=1234), 200, "1234"),
    "HEAD with chunked": ("HEAD", head(200, [("Transfer-Encoding", "chunked")]), 200, None),
    "HEAD with nothing": ("HEAD", head(200), 200, None),
    "HEAD of a long file": ("HEAD", head(200, length=10**12), 200, str(10**12)),
    "HEAD that is 404": ("HEAD", head(404, length=9), 404, "9"),
    "204": ("GET", head(204), 204, None),
    "204 to a DELETE": ("DELETE", head(204), 204, None),
    "304 with a length": ("GET", head(304, [("ETag", '"a"')], length=77), 304, "77"),
    "304 with nothing": ("GET", head(304, [("ETag", '"a"')]), 304, None),
}


@pytest.mark.parametrize("case", BODYLESS)
def test_ends_at_once(gateway, upstream, case):
    method, reply, status, length = BODYLESS[case]
    upstream.always(reply)
    with gateway.connect() as connection, Timed() as took:
        for _ in range(3):
            # One at a time fits: each must have ended, here and at the upstream, before the next.
            answer = connection.ask(method, "/files/x").answer(method).read()
            assert answer.status == status
            assert answer.headers.get("content-length") in (length, None)
            assert status != 204 or "content-length" not in answer.headers
    assert took.seconds < 1
    assert len(upstream.received) == 3
    assert {received.method for received in upstream.received} == {method}
    assert len({received.connection for received in upstream.received}) == 1
    gateway.wait_idle()


INTERIM = [
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
    b"HTTP/1.1 102 Processing\r\n\r\n",
]


@pytest.mark.parametrize("interim", [*INTERIM, b"".join(INTERIM)], ids=["100", "103", "102", "all"])
def test_interim_heads_are_not_the_answer(gateway, upstream, interim):
    upstream.always(interim, 0.05, whole(completion("text", usage(2, 3))))
    with gateway.connect() as connection, Timed() as took:
        for _ in range(2):
            connection.ask("POST", "/v1/chat/completions", body=chat_body(), key=KEY)
            answer = connection.answer().read()
            assert answer.status == 200
            assert answer.json()["choices"][0]["message"]["content"] == "text"
    assert took.seconds < 1
    assert gateway.tokens() == (4, 6)


def test_interim_and_no_body(gateway, upstream):
    upstream.always(b"".join(INTERIM) + head(204))
    with Timed() as took:
        assert gateway.request("GET", "/files/x").status == 204
    assert took.seconds < 1


def test_expect_100_continue_is_answered_by_the_gateway(gateway, upstream):
    with gateway.connect() as connection:
        connection.send(
            b"POST /files/x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
            b"Expect: 100-continue\r\n\r\n"
        )
        assert connection.line() == b"HTTP/1.1 100 Continue"
        assert connection.line() == b""
        connection.send(b"hello")
        assert connection.answer().read().status == 200
    assert upstream.last.body == b"hello"
    assert "expect" not in upstream.last.headers


def test_expectation_is_refused_before_the_body_is_sent(start, upstream):
    """A client that waits for the go-ahead hears of its limit at once."""
    gateway = start(resources(upstream.origin))
    with gateway.connect() as connection:
        connection.send(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n"
            b"Expect: 100-continue\r\n\r\n"
        )
        answer = connection.answer()
        assert (answer.interim, answer.status) == ([], 401)


def test_head_on_our_own_answers(gateway):
    with gateway.connect() as connection:
        for path in ("/livez", "/readyz", "/nothing"):
            answer = connection.ask("HEAD", path).answer("HEAD")
            assert answer.status in (200, 404)
            assert int(answer.headers["content-length"]) > 0
