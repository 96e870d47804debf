"""Slots that several replicas share: whose holder died, hangs, stops, or runs for long."""

import signal
import time

import pytest

from support.client import Timed
from support.gateway import Gateway, resources, stop_all
from support.load import chat_request
from support.openai_shapes import event, openai_upstream, stream_chunk, streamed
from support.poll import sleep_until, until
from support.redis import PREFIX, RedisServer
from support.upstream import HANG, Gate, MockUpstream

TTL = 3.0
POLICY = "api_keys/test"
SLACK = 0.15  # of a busy machine


def rows_with(origin, quota, **more):
    return resources(origin, key_limit={"concurrency": quota, **more})


def gated_stream(upstream):
    """The next request is answered by a stream that ends when the gate is opened."""
    gate = Gate()
    upstream.once(*streamed(event(stream_chunk("One")), gate, event("[DONE]")))
    return gate


def begin(gateway, upstream):
    """A running stream, and the gate that ends it."""
    gate = gated_stream(upstream)
    stream = gateway.start_stream()
    assert stream.status == 200, stream
    stream.read_until(b"One")
    return stream, gate


def over(leases):
    return all(lease.expires < time.time() for lease in leases)


@pytest.fixture(scope="module")
def long_stream(tmp_path_factory):
    """Begun before the other tests, so that it has run for long when it is looked at."""
    folder = tmp_path_factory.mktemp("long")
    redis, mock = RedisServer(folder / "redis"), MockUpstream()
    mock.always(openai_upstream())
    ratelimit = {
        "backend": "redis",
        "redis": {"url": redis.url, "timeout_ms": 2000},
        "concurrency_ttl_secs": int(TTL),
    }
    gateways = []
    for name in ("one", "other"):
        (folder / name).mkdir()
        gateways.append(Gateway(folder / name, rows_with(mock.origin, 1), {"ratelimit": ratelimit}))
    for gateway in gateways:
        until(lambda: not gateway.degraded(), "it counts in Redis")
    stream, gate = begin(gateways[0], mock)
    yield gateways, redis, stream, gate, time.time()
    stop_all(gateways)
    redis.stop()
    mock.stop()


@pytest.fixture
def pair(replicas, upstream, long_stream):
    """pair(quota) gives two gateways whose slots come back after TTL."""

    def start(quota, **more):
        rows = rows_with(upstream.origin, quota, **more)
        return replicas(2, rows, concurrency_ttl_secs=int(TTL))

    return start


def test_slots_of_a_killed_replica_come_back(pair, redis, upstream):
    one, other = pair(5)
    streams = [begin(one, upstream)[0] for _ in range(5)]

    def leases():
        return sorted(redis.leases(POLICY), key=lambda lease: lease.expires)

    # Killed when its leases are as old as they get: just before they are renewed again.
    begun = dict(leases())
    until(lambda: leases()[0].expires > max(begun.values()), "all are renewed", TTL)
    renewed = leases()
    assert len(renewed) == 5
    for holder, expires in renewed:
        assert expires - begun[holder] < TTL / 3 + SLACK
    sleep_until(renewed[0].expires - TTL * 2 / 3 - 0.1)
    before = time.time()
    one.kill()
    after = time.time()
    left = leases()
    assert before + TTL * 2 / 3 - SLACK <= left[0].expires
    assert left[-1].expires <= after + TTL
    # Nobody is let in before, and all are when the last of them is over.
    sleep_until(left[0].expires - 0.2)
    early = other.chat()
    if time.time() < left[0].expires:
        assert early.status == 429
    sleep_until(left[-1].expires)
    gate, running = Gate(), len(upstream.received)
    upstream.always(gate, openai_upstream())
    connections = [other.connect().send(chat_request()) for _ in range(7)]
    upstream.wait_for(running + 5)
    gate.open()
    found = sorted(connection.answer().read().status for connection in connections)
    assert found == [200] * 5 + [429] * 2
    for stream in streams:
        stream.close()


def test_a_replica_that_was_stopped_takes_back_only_its_own(pair, redis, upstream):
    one, other = pair(1)
    stream, gate = begin(one, upstream)
    with one.paused():
        stopped = time.time()
        assert other.chat().status == 429
        until(lambda: over(redis.leases(POLICY)), "its lease is over", TTL + 1)
        second, second_gate = begin(other, upstream)
        assert other.chat().status == 429
        sleep_until(stopped + 2 * TTL)
    until(lambda: len(redis.leases(POLICY)) == 2, "it holds its slot again", 2)
    assert [gateway.chat().status for gateway in (one, other)] == [429, 429]
    gate.open()
    stream.read()
    assert len(redis.leases(POLICY)) == 1
    assert [gateway.chat().status for gateway in (one, other)] == [429, 429]
    second_gate.open()
    second.read()
    assert redis.leases(POLICY) == []
    assert [gateway.chat().status for gateway in (one, other)] == [200, 200]


class TestAway:
    def test_running_streams_take_their_slots_again(self, pair, redis, upstream):
        """Redis came back empty: who renews puts back what was lost."""
        one, other = pair(1)
        stream, gate = begin(one, upstream)
        redis.restart()
        until(lambda: len(redis.leases(POLICY)) == 1, "the slot is taken again", TTL / 3 + 1)
        until(lambda: not other.degraded(), "it counts in Redis", 2)
        assert other.chat().status == 429
        gate.open()
        stream.read()
        assert redis.leases(POLICY) == []
        assert other.chat().status == 200

    def test_slots_taken_meanwhile_are_told(self, pair, redis, upstream):
        one, other = pair(1)
        redis.kill()
        until(one.degraded, "it is away")
        stream, gate = begin(one, upstream)
        assert one.chat().status == 429
        redis.start()
        until(lambda: len(redis.leases(POLICY)) == 1, "the slot is told of", 2)
        until(lambda: not other.degraded(), "it counts in Redis", 2)
        assert other.chat().status == 429
        gate.open()
        stream.read()
        until(lambda: redis.leases(POLICY) == [], "the slot is free", 1)
        assert other.chat().status == 200


class TestStop:
    def test_streams_end_and_all_is_settled(self, pair, redis, upstream):
        one, other = pair(2, tpd=1000)
        streams = [begin(one, upstream) for _ in range(2)]
        one.signal(signal.SIGTERM)
        until(lambda: one.readyz() is None, "nobody new is let in", 2)
        assert other.chat().status == 429
        for stream, gate in streams:
            gate.open()
            assert stream.read().body.endswith(b"[DONE]\n\n")
        assert one.wait_exit() == 0
        assert redis.leases(POLICY) == []
        # Without usage: the input, 2 tokens, and what was delivered, 1.
        assert redis.used(POLICY) == 2 * 3
        assert [other.chat().status for _ in range(2)] == [200, 200]

    def test_streams_that_take_too_long_are_settled_too(self, redis, start, upstream):
        settings = {
            "ratelimit": {"backend": "redis", "redis": {"url": redis.url, "timeout_ms": 2000}},
            "shutdown": {"max_drain_secs": 1},
        }
        gateway = start(rows_with(upstream.origin, 5, tpd=1000), settings)
        until(lambda: not gateway.degraded(), "it counts in Redis")
        upstream.always(*streamed(event(stream_chunk("One")), HANG))
        streams = [gateway.start_stream() for _ in range(3)]
        for stream in streams:
            stream.read_until(b"One")
        assert len(redis.leases(POLICY)) == 3
        with Timed() as took:
            gateway.signal(signal.SIGTERM)
            assert gateway.wait_exit() == 0
        assert took.seconds < 4
        assert redis.leases(POLICY) == []
        assert redis.used(POLICY) == 3 * 3

    def test_announcements_end(self, pair, redis):
        for gateway in pair(1):
            gateway.stop()
        key = f"{PREFIX}replicas"
        assert 0 < redis.ask("PTTL", key) <= 15_000
        ends = [int(end) / 1e6 for end in redis.ask("ZRANGE", key, 0, -1, "WITHSCORES")[1::2]]
        assert len(ends) == 2
        assert all(end <= time.time() + 15 for end in ends)


def test_a_stream_of_five_ttls_keeps_its_slot(long_stream):
    gateways, redis, stream, gate, begun = long_stream
    while time.time() < begun + 5 * TTL + 0.2:
        assert [gateway.chat().status for gateway in gateways] == [429, 429]
        time.sleep(0.05)
    (lease,) = redis.leases(POLICY)
    assert lease.expires > time.time()
    gate.open()
    stream.read()
    assert redis.leases(POLICY) == []
    assert [gateway.chat().status for gateway in gateways] == [200, 200]
