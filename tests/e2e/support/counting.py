"""Whether replicas count together, and what they do when they cannot."""

import time

from support.gateway import resources
from support.poll import until

PROBE = "sk-probe"  # a key of its own, to see who counts together
BACK_WITHIN = 2.0  # seconds, after which counting is shared again


def rows_with(origin, key_limit=None, **collections):
    """As `resources`, and the key PROBE, with a limit that it does not reach."""
    rows = resources(origin, key_limit=key_limit, **collections)
    probe = {"id": "probe", "key": PROBE, "allowed_models": ["*"]}
    rows["api_keys"].append({**probe, "rate_limit": {"rpd": 1_000_000}})
    return rows


def know_each_other(gateways, redis):
    """Replicas hear how many they are whenever they connect, and every five seconds."""
    redis.ask("CLIENT", "KILL", "TYPE", "normal")
    count = 3 * len(gateways)  # one for each event loop
    until(lambda: redis.clients() == count, "all are connected again")
    until(lambda: not any(gateway.degraded() for gateway in gateways), "all count in Redis")


def count_together(gateways):
    """Whether each sees what the one before it counted."""
    answers = [gateway.chat(key=PROBE) for gateway in (*gateways, gateways[0])]
    left = [int(answer.headers["x-ratelimit-remaining-requests"]) for answer in answers]
    return left == list(range(left[0], left[0] - len(left), -1))


def fallbacks(gateways):
    return [gateway.metric("stint_fallback_decisions_total") for gateway in gateways]


def unknown_charges(gateways):
    return sum(gateway.metric("stint_unknown_charges_total") for gateway in gateways)


def wait_shared(gateways, back):
    """Returns when counting is shared again by all; Redis was back at that instant."""
    left = back + BACK_WITHIN - time.time()
    until(lambda: count_together(gateways), "counting is shared again", left)
