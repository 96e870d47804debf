"""When a client goes away its upstream call is cancelled, and what it used is charged."""

import time

import pytest

from support.client import Connection
from support.gateway import KEY, chat_body, resources
from support.openai_shapes import STREAM_HEAD, chunk, event, openai_upstream, stream_chunk, usage
from support.upstream import HANG

QUOTA = 100_000
INPUT = "y" * 400  # 100 tokens by estimate
PATIENCE = 1.0  # how soon the upstream must be told


@pytest.fixture
def gateway(start, upstream):
    return start(resources(upstream.origin, key_limit={"concurrency": 1, "tpd": QUOTA}))


@pytest.fixture(params=[Connection.close, Connection.reset], ids=["close", "reset"])
def leave(request):
    return request.param


def used(gateway, upstream):
    """The tokens that the key's limit holds, by a request that is itself worth one token."""
    upstream.always(openai_upstream())
    answer = gateway.post("/v1/embeddings", {"model": "embed", "input": "x"})
    assert answer.status == 200, answer
    return QUOTA - int(answer.headers["x-ratelimit-remaining-tokens"]) - 1


def ask(gateway, **more):
    connection = gateway.connect()
    return connection.ask("POST", "/v1/chat/completions", body=chat_body(INPUT, **more), key=KEY)


def assert_cancelled(gateway, upstream, left_at):
    closed_at = upstream.received[0].wait_closed(PATIENCE)
    assert closed_at - left_at < PATIENCE
    gateway.wait_idle(PATIENCE)
    assert len(upstream.received) == 1, "nothing is asked again"


def test_before_the_first_token_of_a_stream(gateway, upstream, leave):
    upstream.always(HANG)
    connection = ask(gateway, stream=True)
    upstream.wait_for(1)
    left_at = time.monotonic()
    leave(connection)
    assert_cancelled(gateway, upstream, left_at)
    # The input; an answer there was none.
    assert used(gateway, upstream) == 100
    assert gateway.tokens() == (100, 0)


def test_after_the_head_of_a_stream(gateway, upstream, leave):
    upstream.always(STREAM_HEAD, HANG)
    connection = ask(gateway, stream=True)
    assert connection.answer().status == 200
    left_at = time.monotonic()
    leave(connection)
    assert_cancelled(gateway, upstream, left_at)
    assert used(gateway, upstream) == 100
    assert gateway.tokens() == (100, 0)


def test_after_three_events(gateway, upstream, leave):
    events = [chunk(event(stream_chunk("z" * 40))) for _ in range(3)]
    upstream.always(STREAM_HEAD, *events, HANG)
    connection = ask(gateway, stream=True)
    answer = connection.answer()
    while answer.body.count(b"\n\n") < 3:
        next(answer.pieces())
    left_at = time.monotonic()
    leave(connection)
    assert_cancelled(gateway, upstream, left_at)
    # The input, and a quarter of the bytes of text that were delivered.
    assert used(gateway, upstream) == 100 + 30
    assert gateway.tokens() == (100, 30)


def test_after_usage_was_told(gateway, upstream, leave):
    tokens = usage(250, 70)
    upstream.always(STREAM_HEAD, chunk(event(stream_chunk("a", usage=tokens))), HANG)
    connection = ask(gateway, stream=True)
    connection.answer().read_until(b"\n\n")
    left_at = time.monotonic()
    leave(connection)
    assert_cancelled(gateway, upstream, left_at)
    assert used(gateway, upstream) == 320


def test_while_the_upstream_keeps_sending(gateway, upstream, leave):
    events = [part for _ in range(400) for part in (chunk(event(stream_chunk("word"))), 0.01)]
    upstream.always(STREAM_HEAD, *events)
    connection = ask(gateway, stream=True)
    connection.answer().read_until(b"\n\n")
    left_at = time.monotonic()
    leave(connection)
    assert_cancelled(gateway, upstream, left_at)


def test_in_a_call_without_a_stream(gateway, upstream, leave):
    upstream.always(HANG)
    connection = ask(gateway)
    upstream.wait_for(1)
    left_at = time.monotonic()
    leave(connection)
    assert_cancelled(gateway, upstream, left_at)
    assert used(gateway, upstream) == 100
    assert gateway.tokens() == (100, 0)


def test_in_the_middle_of_a_plain_answer(gateway, upstream, leave):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
    upstream.always(head, b'{"id":', HANG)
    connection = ask(gateway)
    upstream.wait_for(1)
    left_at = time.monotonic()
    leave(connection)
    assert_cancelled(gateway, upstream, left_at)
    assert used(gateway, upstream) >= 100


def test_client_that_reads_nothing_does_not_fill_memory(start, upstream):
    """The upstream is read no faster than the client reads."""
    gateway = start(resources(upstream.origin), {"proxy": {"write_timeout_ms": 1000}})
    before = gateway.peak_bytes()
    big = chunk(event(stream_chunk("x" * 65536)))
    upstream.always(STREAM_HEAD, *[part for _ in range(600) for part in (big, 0.0)], HANG)
    connection = ask(gateway, stream=True)
    upstream.wait_for(1)
    # 40 MB are on offer; the client takes none, and is given up after the write time-out.
    upstream.received[0].wait_closed(5)
    assert gateway.peak_bytes() - before < 8_000_000
    connection.close()
    gateway.wait_idle()
