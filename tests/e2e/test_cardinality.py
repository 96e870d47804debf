"""No value that a caller sends becomes a label: the number of series does not change."""

import random
import time

import pytest

from support.client import request
from support.gateway import KEY, chat_body, limit, resources

MANY = 1500


@pytest.fixture
def gateway(start, upstream):
    routes = [
        {
            "name": "site",
            "match": {"path_prefix": "/site"},
            "upstream": upstream.origin,
            "rate_limit": [limit("requests", 1, "1s")],
        }
    ]
    policies = [
        {"name": "by plan", "group_by": ["header:x-plan"], "limits": {"rpd": 1_000_000}},
        {"name": "by path", "group_by": ["path", "client_ip"], "limits": {"rpd": 1_000_000}},
    ]
    rows = resources(upstream.origin, routes=routes, rate_limit_policies=policies)
    rows["models"].append({**rows["models"][0], "display_name": "any/*"})
    trusted = {"proxy": {"real_ip": {"trusted_proxies": ["127.0.0.1"]}}}
    return start(rows, trusted)


def warm(gateway):
    """One of each kind, so that whatever appears at first use has appeared."""
    send(gateway, 1, "warm")


def send(gateway, count, word):
    """Requests in which everything that a caller may choose is new each time."""
    chosen = random.Random(7)
    with gateway.connect() as connection:
        for n in range(count):
            new = f"{word}-{n}-{chosen.randrange(1 << 40):x}"
            asks = [
                ("POST", "/v1/chat/completions", chat_body(model=f"made-up-{new}"), KEY),
                ("POST", "/v1/chat/completions", chat_body(model=f"any/{new}"), "sk-" + new),
                ("GET", f"/site/{new}?q={new}", None, None),
                (f"M{new.upper().replace('-', '')}", f"/nowhere/{new}", None, None),
            ]
            for method, path, body, key in asks:
                headers = {
                    "Host": f"{new}.test",
                    "X-Plan": new,
                    "X-Request-Id": new,
                    "User-Agent": new,
                    "X-Forwarded-For": f"203.{n >> 8 & 255}.{n & 255}.1",
                }
                connection.ask(method, path, body=body, key=key, headers=headers)
                assert connection.answer(method).read().status in (200, 401, 404, 405, 429)


def test_number_of_series_is_constant(gateway):
    warm(gateway)
    before = set(gateway.series())
    send(gateway, MANY // 3, "first")
    resident = gateway.resident_bytes()
    send(gateway, MANY, "second")
    begun = time.monotonic()
    after = set(gateway.series())
    assert time.monotonic() - begun < 1
    assert after == before
    # Buckets of four new values of attributes in each turn, and nothing else.
    assert gateway.resident_bytes() - resident < MANY * 4 * 1500


def test_labels_are_names_of_the_configuration(gateway):
    send(gateway, 20, "labels")
    text = gateway.scrape()
    assert "labels-" not in text
    assert "203." not in text
    assert KEY not in text
    assert 'model="any/*"' in text


def test_scrape_has_types_and_help(gateway):
    text = gateway.scrape()
    for name in ("stint_decisions_total", "stint_requests_in_flight", "stint_tokens_total"):
        assert f"# TYPE {name} " in text
        assert f"# HELP {name} " in text


@pytest.mark.parametrize("path", ["/", "/metrics/", "/other"])
def test_nothing_else_is_served_there(gateway, path):
    assert request(gateway.metrics_port, "GET", path).status == 404
