"""Three replicas whose clocks are minutes apart: what Redis counts is exact all the same.

Only stint's clock is faked, and only the wall clock; Redis and the tests have the real one.
"""

import glob
import math
import re
import time
from datetime import datetime

import pytest

from support.deployments import EVERY
from support.gateway import limit, resources
from support.load import burst, chat_request
from support.openai_shapes import completion, openai_upstream, usage, whole
from support.poll import room_in_window, until

SKEWS = (-420, 0, 1380)  # seconds
REQUESTS = 3000
MINUTE = 60
TOKENS = 8  # of one request, as estimated and as used
pytestmark = pytest.mark.parametrize("redis", EVERY, indirect=True)
POLICY = "exact"


def fake_clock(skew):
    (library,) = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    return {
        "LD_PRELOAD": library,
        "FAKETIME": f"{skew:+d}s",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def skew_of(gateway):
    """How far its wall clock was off when it wrote the first line of its log."""
    stamp = re.search(r"\d{4}-\d\d-\d\dT[\d:.]+Z", gateway.log())[0]
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp() - time.time()


@pytest.fixture
def skewed(replicas, upstream):
    """skewed(limits) gives three replicas with clocks far apart, and a policy of these limits."""

    def start(limits):
        policy = {"id": POLICY, "name": POLICY, "group_by": ["api_key"], "limits": limits}
        rows = resources(
            upstream.origin, rate_limit_policies=[{**policy, "token_admission": "reserve"}]
        )
        gateways = replicas(3, rows, environments=[fake_clock(skew) for skew in SKEWS])
        for gateway, skew in zip(gateways, SKEWS):
            assert abs(skew_of(gateway) - skew) < 20
        return gateways

    return start


def ask_all(gateways, connections=12):
    """All requests, within one minute of Redis's clock."""
    room_in_window(MINUTE, 12)
    minute = time.time() // MINUTE
    samples = burst(gateways, chat_request(max_tokens=TOKENS - 2), REQUESTS, connections)
    assert time.time() // MINUTE == minute, "too slow"
    assert {sample.status for sample in samples} == {200, 429}
    assert all(gateway.metric("stint_fallback_decisions_total") == 0 for gateway in gateways)
    return samples


def admitted(samples):
    return sum(sample.status == 200 for sample in samples)


@pytest.mark.parametrize("algorithm", ["fixed_window", "sliding_window", "sliding_log"])
def test_requests_in_a_minute(skewed, upstream, algorithm):
    gateways = skewed([limit("requests", 100, "60s", algorithm)])
    assert admitted(ask_all(gateways)) == 100
    assert len(upstream.received) == 100


@pytest.mark.parametrize("algorithm", ["fixed_window", "sliding_window"])
def test_tokens_in_a_minute(skewed, redis, upstream, algorithm):
    upstream.always(openai_upstream(2, TOKENS - 2))
    gateways = skewed([limit("tokens", 100 * TOKENS, "60s", algorithm)])
    assert admitted(ask_all(gateways)) == 100
    field = "used" if algorithm == "fixed_window" else "current"
    assert redis.bucket(POLICY)[algorithm][field] == 100 * TOKENS


def test_token_bucket(skewed, redis):
    capacity, rate = 100, 100  # units a second
    bucket = limit("requests", rate * MINUTE, "60s", "token_bucket", burst=capacity)
    gateways = skewed([bucket])
    samples = ask_all(gateways)
    found = redis.bucket(POLICY)["token_bucket"]

    # Since the first decision, at which it was full, until Redis looked at it last.
    def refilled(first, last):
        return math.floor((last - first) * rate)

    first_sent = min(sample.sent for sample in samples)
    first_told = min(sample.received for sample in samples)
    taken = admitted(samples) + found["level"]
    last = found["last"] / 1e6
    assert capacity + refilled(first_told, last) <= taken
    assert taken <= capacity + refilled(first_sent, last)
    # And until the last decision: whatever came in was asked for at once.
    last_sent = max(sample.sent for sample in samples)
    last_told = max(sample.received for sample in samples)
    assert capacity + refilled(first_told, last_sent) <= admitted(samples)
    assert admitted(samples) <= capacity + refilled(first_sent, last_told)


def test_concurrency(skewed, redis, upstream):
    """Counted where it matters: what runs at the upstream at a time."""
    quota, running = 10, []
    most = 0

    def begin(received):
        nonlocal most
        running.append(received)
        most = max(most, len(running))
        return [0.03]

    def end(received):
        running.remove(received)
        return [whole(completion("Done", usage(2, TOKENS - 2)))]

    upstream.always(begin, end)
    gateways = skewed({"concurrency": quota})
    samples = ask_all(gateways, connections=30)
    assert most == quota
    assert admitted(samples) > 3 * quota
    until(lambda: redis.leases(POLICY) == [], "all slots are free")
