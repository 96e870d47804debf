"""Redis goes away while requests come in: what is decided meanwhile, and how it ends."""

import math
import re
import time
from datetime import datetime

import pytest

from support.client import Timed
from support.counting import (
    BACK_WITHIN,
    PROBE,
    count_together,
    fallbacks,
    know_each_other,
    rows_with,
    unknown_charges,
    wait_shared,
)
from support.deployments import EVERY
from support.gateway import resources
from support.load import Load, at_once, chat_request
from support.openai_shapes import stream_events, streamed, usage
from support.poll import room_in_window, until
from support.upstream import Gate

pytestmark = pytest.mark.parametrize("redis", EVERY, indirect=True)
POLICY = "api_keys/test"
MINUTE = 60
RATE = 150  # requests a second, over all replicas


def instant(stamp):
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


class Outage:
    """What the samples of a load say about an outage that began at some instant."""

    def __init__(self, quota, samples, begun, replicas):
        before = [sample for sample in samples if sample.received < begun]
        # Of all that Redis may have admitted ...
        admitted = sum(sample.status == 200 and sample.sent < begun for sample in samples)
        # ... a replica knows what the last answer told it that it passed on.
        heard = [0] * replicas
        for sample in before:
            left = int(sample.header("x-ratelimit-remaining-requests"))
            heard[sample.replica] = max(heard[sample.replica], quota - left)
        self.unheard = sum(admitted - one for one in heard) / replicas
        self.bound = quota + replicas + math.ceil(self.unheard)


@pytest.fixture
def three(replicas, upstream, redis):
    """three(key_limit) gives three replicas that have heard of one another."""

    def start(key_limit, timeout_ms=50, **collections):
        rows = rows_with(upstream.origin, key_limit, **collections)
        gateways = replicas(3, rows, timeout_ms=timeout_ms)
        know_each_other(gateways, redis)
        return gateways

    return start


class TestLocal:
    """The outage rule that goes without saying."""

    QUOTA = 300

    def check_during(self, gateways, load, redis, begun):
        """While Redis is away: everybody is answered, and told on. What was answered so far."""
        assert load.statuses() == {200, 429}
        for gateway in gateways:
            ready = gateway.request("GET", "/readyz")
            assert ready.status == 200
            assert ready.json()["store"]["degraded"] is True
            # Those that nobody asks are not missed at once.
            assert 1 <= gateway.metric("stint_store_degraded") <= redis.shards
            assert gateway.metric("stint_buckets_unsent") > 0
        assert all(count > 0 for count in fallbacks(gateways))
        # Once it is known to be away nobody waits for it.
        samples = list(load.samples)
        waits = sorted(sample.seconds for sample in samples if sample.sent > begun + 1)
        assert waits[len(waits) // 2] < 0.05
        return samples

    def check_logs(self, gateways, begun):
        """At most one line of a kind in ten seconds; the outages here are shorter."""
        for gateway in gateways:
            gateway.wait_log("warn  redis is away", "warn  counting by the outage rule")
            lines = [line.split(" ", 1) for line in gateway.log().splitlines()]
            texts = [text for stamp, text in lines if instant(stamp) > begun]
            warnings = [text for text in texts if text.startswith("warn")]
            kinds = [re.sub(r"[:,].*", "", text) for text in warnings]
            assert "warn  redis is away" in kinds, gateway.log()
            assert "warn  counting by the outage rule" in kinds, gateway.log()
            of_server = [re.findall(r"127\.0\.0\.1:\d+/0", text)[:1] for text in warnings]
            told = [(kind, *server) for kind, server in zip(kinds, of_server)]
            assert len(told) == len(set(told)), gateway.log()

    def is_told_back(self, log):
        return log.rindex("redis counts") > log.rindex("redis is away")

    def check_after(self, gateways, back):
        wait_shared(gateways, back)
        until(lambda: not any(gateway.degraded() for gateway in gateways), "all are well", 1)
        for gateway in gateways:
            assert gateway.metric("stint_store_degraded") == 0
            until(lambda gateway=gateway: self.is_told_back(gateway.log()), "it is told", 2)
        before = fallbacks(gateways)
        assert count_together(gateways)
        assert fallbacks(gateways) == before
        for gateway in gateways:
            told = lambda gateway=gateway: gateway.metric("stint_buckets_unsent") == 0  # noqa: E731
            until(told, "all is told to Redis", 7)

    def test_killed(self, three, redis):
        gateways = three({"rpm": self.QUOTA})
        room_in_window(MINUTE, 12)
        minute = time.time() // MINUTE
        with Load(gateways, chat_request(), RATE) as load:
            until(lambda: load.admitted() > self.QUOTA / 2, "half of it is used", 4)
            begun = time.time()
            redis.kill()
            until(lambda: time.time() > begun + 2.5, "it is away", 4)
            meanwhile = self.check_during(gateways, load, redis, begun)
            redis.start()
            back = time.time()
            self.check_after(gateways, back)
        assert load.statuses() == {200, 429}
        assert time.time() // MINUTE == minute, "too slow"
        self.check_logs(gateways, begun)
        outage = Outage(self.QUOTA, load.samples, begun, 3)
        admitted = sum(sample.status == 200 for sample in meanwhile)
        assert self.QUOTA * 0.95 <= admitted <= outage.bound
        # It came back empty: one more quota.
        unknown = unknown_charges(gateways)
        assert load.admitted() <= outage.bound + self.QUOTA + unknown

    def test_stopped(self, three, redis):
        gateways = three({"rpm": self.QUOTA})
        room_in_window(MINUTE, 12)
        minute = time.time() // MINUTE
        with Load(gateways, chat_request(), RATE) as load:
            until(lambda: load.admitted() > self.QUOTA / 2, "half of it is used", 4)
            begun = time.time()
            with redis.paused():
                until(lambda: time.time() > begun + 2.5, "it is away", 4)
                meanwhile = self.check_during(gateways, load, redis, begun)
            back = time.time()
            self.check_after(gateways, back)
        assert load.statuses() == {200, 429}
        assert time.time() // MINUTE == minute, "too slow"
        self.check_logs(gateways, begun)
        outage = Outage(self.QUOTA, load.samples, begun, 3)
        admitted = sum(sample.status == 200 for sample in meanwhile)
        assert self.QUOTA * 0.95 <= admitted <= outage.bound
        # What was admitted meanwhile is told to Redis, and told once. Those whose answer was lost
        # may be there already, and are not told again: here they never ran, and are unheard of.
        unknown = unknown_charges(gateways)
        assert load.admitted() <= outage.bound + unknown
        told = load.admitted() - unknown
        until(lambda: redis.used(POLICY) >= told, "all is told", 1)
        assert redis.used(POLICY) <= load.admitted()


def rule(name, **more):
    """A policy of three requests a day for the key of this name, and what it does in an outage."""
    condition = {"dimension": "api_key", "operator": "==", "value": name}
    return {
        "id": f"p-{name}",
        "name": f"p-{name}",
        "conditions": [condition],
        "group_by": ["api_key"],
        "limits": {"rpd": 3},
        "on_store_error": name,
        **more,
    }


class TestRules:
    RULES = ("deny", "allow", "local", "local_full")

    def test_each_policy_has_its_own(self, replicas, redis, upstream):
        keys = [{"id": name, "key": f"sk-{name}", "allowed_models": ["*"]} for name in self.RULES]
        policies = [rule(name) for name in self.RULES]
        rows = resources(upstream.origin, keys=keys, rate_limit_policies=policies)
        pair = replicas(2, rows)
        know_each_other(pair, redis)
        redis.kill()
        until(lambda: all(gateway.degraded() for gateway in pair), "it is away")

        def statuses(name):
            return [[one.chat(key=f"sk-{name}").status for _ in range(4)] for one in pair]

        refused = pair[0].chat(key="sk-deny")
        assert refused.status == 503
        assert refused.headers["retry-after"] == "1"
        assert refused.error()["code"] == "limits_unavailable"
        assert upstream.received == []
        assert statuses("deny") == [[503] * 4] * 2
        assert statuses("allow") == [[200] * 4] * 2
        assert statuses("local") == [[200, 200, 429, 429]] * 2  # 3 / 2, rounded up
        assert statuses("local_full") == [[200, 200, 200, 429]] * 2
        assert pair[0].metric("stint_decisions_total", policy="all", outcome="undecided") == 5
        assert [gateway.readyz() for gateway in pair] == [200, 200]

    def test_the_default_is_a_setting(self, replicas, redis, upstream):
        rows = resources(upstream.origin, key_limit={"rpd": 3})
        (gateway,) = replicas(1, rows, on_store_error="deny")
        assert gateway.chat().status == 200
        redis.kill()
        until(gateway.degraded, "it is away")
        assert gateway.chat().status == 503
        redis.start()
        until(lambda: gateway.chat().status == 200, "it counts again", BACK_WITHIN)


def late_calls(redis):
    """Scripts that ran and wrote nothing, or nothing that is to expire."""
    return redis.calls("evalsha") - redis.calls("pexpire")


def test_calls_that_a_stopped_redis_finds_when_it_wakes_change_nothing(replicas, redis, upstream):
    condition = {"dimension": "api_key", "operator": "==", "value": "test"}
    policy = rule("allow", conditions=[condition], limits={"rpd": 1000, "concurrency": 500})
    rows = resources(upstream.origin, rate_limit_policies=[policy])
    gateways = replicas(3, rows, timeout_ms=50)
    assert {gateway.chat().status for gateway in gateways} == {200}
    before, run = redis.raw_bucket("p-allow"), late_calls(redis)
    assert redis.used("p-allow") == 3
    begun = time.time()
    with redis.paused():
        samples = at_once(gateways, chat_request(), 150)
        assert {sample.status for sample in samples} == {200}
        until(lambda: time.time() > begun + 5, "five seconds have passed", 6)
    until(lambda: not any(gateway.degraded() for gateway in gateways), "all count again", 2)
    # Some were written, and have run by now.
    assert unknown_charges(gateways) > 0
    assert late_calls(redis) > run
    assert redis.raw_bucket("p-allow") == before
    assert redis.leases("p-allow") == []
    answer = gateways[0].chat()
    assert answer.headers["x-ratelimit-remaining-requests"] == "996"


def test_what_ends_while_it_is_away_is_settled_later(replicas, redis, upstream):
    limits = {"concurrency": 1, "tpd": 1000}
    rows = rows_with(upstream.origin, limits)
    one, other = replicas(2, rows, timeout_ms=200, workers=1)
    gate = Gate()
    events = stream_events(["One", " two"], usage(3, 5))
    upstream.once(*streamed(events[0], gate, *events[1:]))
    stream = one.start_stream()
    stream.read_until(b"One")
    assert len(redis.leases(POLICY)) == 1
    assert redis.used(POLICY) > 8
    with redis.paused():

        def nobody_waits():
            with Timed() as took:
                one.chat(key=PROBE)
            return took.seconds < 0.1

        until(nobody_waits, "it is known to be away")
        gate.open()
        stream.read()
        one.wait_idle()
    until(lambda: redis.used(POLICY) == 8, "what was used is told", BACK_WITHIN)
    assert redis.leases(POLICY) == []
    until(lambda: other.chat().status == 200, "the slot is free", BACK_WITHIN)


class TestUnderLoad:
    """What happens to a Redis in its daily life; requests come in meanwhile."""

    RATE = 200
    QUOTA = 1_000_000

    def test_scripts_are_flushed(self, three, redis):
        gateways = three({"rpd": self.QUOTA}, timeout_ms=2000)
        with Load(gateways, chat_request(), self.RATE) as load:
            for turn in range(1, 11):
                until(lambda: load.admitted() > turn * 30, "requests go on")
                redis.ask("SCRIPT", "FLUSH")
        assert load.statuses() == {200}
        assert redis.used(POLICY) == load.admitted()
        assert fallbacks(gateways) == [0] * 3

    def test_connections_are_killed(self, three, redis):
        gateways = three({"rpd": self.QUOTA}, timeout_ms=2000)
        with Load(gateways, chat_request(), self.RATE) as load:
            for turn in range(1, 6):
                until(lambda: load.admitted() > turn * 60, "requests go on")
                redis.ask("CLIENT", "KILL", "TYPE", "normal")
        assert load.statuses() == {200}
        until(lambda: count_together(gateways), "counting is shared", BACK_WITHIN)
        # Where the answer to a charge was lost, it may not have been counted; never twice.
        extra = redis.used(POLICY) - load.admitted()
        assert -unknown_charges(gateways) <= extra <= 0

    def test_it_restarts(self, three, redis):
        gateways = three({"rpd": self.QUOTA})
        with Load(gateways, chat_request(), self.RATE) as load:
            until(lambda: load.admitted() > 100, "requests are counted")
            redis.restart()
            back = time.time()
            wait_shared(gateways, back)
            until(lambda: len(load.samples) > 400, "requests go on")
        assert load.statuses() == {200}
        # It came back empty, and counted what came then; and what was decided without it.
        later = sum(sample.sent > back for sample in load.samples)
        assert 0 < redis.used(POLICY) < len(load.samples)
        assert redis.used(POLICY) >= later - unknown_charges(gateways)
