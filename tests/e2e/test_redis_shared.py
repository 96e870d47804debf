"""Several replicas, one Redis: limits hold for all of them together."""

import time

import pytest

from support.client import Connection
from support.gateway import KEY, chat_body, limit, model, resources
from support.load import at_once, burst, chat_request
from support.openai_shapes import openai_upstream
from support.poll import room_in_window, sleep_until, until
from support.upstream import Gate

MINUTE = 60
TRIES = 6  # of what a busy machine may be too slow for
POLICY = "api_keys/test"  # the limits of the key that `resources` makes


def in_turn(gateways, count, **ask):
    return [gateways[turn % len(gateways)].chat(**ask).status for turn in range(count)]


class TestRequests:
    def test_one_a_minute(self, replicas, upstream):
        one, other = replicas(2, resources(upstream.origin, key_limit={"rpm": 1}))
        room_in_window(MINUTE, 2)
        assert one.chat().status == 200
        refused = other.chat()
        assert refused.status == 429
        assert 0 < int(refused.headers["retry-after"]) <= 60
        assert 0 < int(refused.headers["retry-after-ms"]) <= 60_000
        assert len(upstream.received) == 1

    def test_one_a_second(self, replicas, upstream):
        one, other = replicas(2, resources(upstream.origin, key_limit={"rps": 1}))
        for _ in range(TRIES):
            room_in_window(1, 0.7)
            second = time.time() // 1
            statuses = [one.chat().status, other.chat().status]
            if time.time() // 1 == second:
                break  # else this machine was too slow to tell anything
        assert statuses == [200, 429]
        sleep_until(second + 1)
        assert other.chat().status == 200

    def test_in_memory_each_has_its_own(self, start, upstream):
        rows = resources(upstream.origin, key_limit={"rpd": 1})
        one, other = [start(rows, {"ratelimit": {"backend": "memory"}}) for _ in range(2)]
        assert in_turn([one, other], 4) == [200, 200, 429, 429]
        one.wait_log("in memory: limits hold for this process alone")

    def test_plain_route(self, replicas, upstream):
        route = {"name": "pay", "match": {"path_prefix": "/pay"}, "upstream": upstream.origin}
        route["rate_limit"] = {"rpm": 3}
        gateways = replicas(3, resources(upstream.origin, routes=[route]))
        room_in_window(MINUTE, 2)
        answers = [gateways[turn % 3].request("GET", "/pay/now") for turn in range(4)]
        assert [answer.status for answer in answers] == [200, 200, 200, 429]
        left = [answer.headers["x-ratelimit-remaining"] for answer in answers]
        assert left == ["2", "1", "0", "0"]
        assert 0 < int(answers[3].headers["retry-after"]) <= 60

    def test_what_is_asked_before_authentication(self, replicas, upstream):
        policies = [{"name": "address", "group_by": ["client_ip"], "limits": {"rpd": 3}}]
        gateways = replicas(2, resources(upstream.origin, rate_limit_policies=policies))
        assert in_turn(gateways, 4, key="sk-guessed") == [401, 401, 401, 429]
        assert in_turn(gateways, 2) == [429, 429]

    def test_headers_tell_what_is_left_to_all(self, replicas, upstream):
        """Each answer counts its own request, whoever admitted those before."""
        gateways = replicas(3, resources(upstream.origin, key_limit={"rpd": 20}))
        answers = [gateways[turn % 3].chat() for turn in range(21)]
        left = [int(answer.headers["x-ratelimit-remaining-requests"]) for answer in answers]
        assert left == [*range(19, -1, -1), 0]
        assert [answer.status for answer in answers] == [200] * 20 + [429]

    def test_refused_requests_charge_nobody(self, replicas, redis, upstream):
        keys = [
            {"id": "busy", "key": "sk-busy", "allowed_models": ["*"], "rate_limit": {"rpd": 10}},
            {"id": "other", "key": "sk-other", "allowed_models": ["*"]},
        ]
        rows = resources(upstream.origin, keys=keys)
        rows["models"] = [model("chat", id="site", rate_limit={"rpd": 100})]
        gateways = replicas(3, rows)
        busy = burst(gateways, chat_request("sk-busy"), 200)
        assert sorted(sample.status for sample in busy) == [200] * 10 + [429] * 190
        assert redis.used("models/site") == 10
        others = burst(gateways, chat_request("sk-other"), 100)
        assert sorted(sample.status for sample in others) == [200] * 90 + [429] * 10
        assert redis.used("models/site") == 100

    def test_a_change_of_the_quota_keeps_the_count(self, replicas, upstream):
        gateways = replicas(2, resources(upstream.origin, key_limit={"rpd": 2}))
        assert in_turn(gateways, 3) == [200, 200, 429]
        for gateway in gateways:
            gateway.reload(resources(upstream.origin, key_limit={"rpd": 4}))
        assert in_turn(gateways, 3) == [200, 200, 429]

    def test_a_restart_forgets_nothing(self, replicas, upstream):
        rows = resources(upstream.origin, key_limit={"rpd": 3})
        (first,) = replicas(1, rows)
        assert in_turn([first], 2) == [200, 200]
        first.stop()
        (second,) = replicas(1, rows)
        assert in_turn([second], 2) == [200, 429]


class TestTokens:
    def test_whoever_has_read_an_answer_is_judged_with_it(self, replicas, upstream):
        """Answers of 8 tokens, replicas in turn, each at the instant the one before was read."""
        rounds = 100
        keys = [
            {"key": f"sk-{turn}", "allowed_models": ["*"], "rate_limit": {"tpm": 10}}
            for turn in range(rounds)
        ]
        gateways = replicas(3, resources(upstream.origin, keys=keys))
        connections = [gateway.connect() for gateway in gateways]
        room_in_window(MINUTE, 5)
        for turn in range(rounds):
            ask = {"body": chat_body(stream=turn % 2 == 0), "key": f"sk-{turn}"}
            statuses = []
            for step in range(3):
                connection = connections[(turn + step) % 3]
                connection.ask("POST", "/v1/chat/completions", **ask)
                statuses.append(connection.answer().read().status)
            assert statuses == [200, 200, 429], turn
        for connection in connections:
            connection.close()

    def test_what_is_estimated_is_reserved(self, replicas, redis, upstream):
        """100 tokens, five requests at once that may take 40: two go; then what they did take."""
        policy = {"id": "strict", "name": "strict", "token_admission": "reserve"}
        policies = [{**policy, "group_by": ["api_key"], "limits": {"tpd": 100}}]
        gateways = replicas(3, resources(upstream.origin, rate_limit_policies=policies))
        gate, ask = Gate(), {"text": "hello", "max_tokens": 38}  # 2 tokens of input
        upstream.always(gate, openai_upstream(2, 28))
        connections = [gateways[turn % 3].connect() for turn in range(5)]
        for connection in connections:
            connection.ask("POST", "/v1/chat/completions", body=chat_body(**ask), key=KEY)
        upstream.wait_for(2)
        gate.open()
        statuses = sorted(connection.answer().read().status for connection in connections)
        assert statuses == [200] * 2 + [429] * 3
        assert redis.used("strict") == 60
        assert in_turn(gateways, 2, **ask) == [200, 429]

    def test_refused_and_failed_requests_use_nothing(self, replicas, redis, upstream):
        policy = {"id": "strict", "name": "strict", "token_admission": "reserve"}
        policies = [{**policy, "group_by": ["api_key"], "limits": {"tpd": 1000}}]
        gateways = replicas(3, resources(upstream.origin, rate_limit_policies=policies))
        upstream.always(openai_upstream(2, 898))
        assert in_turn(gateways, 1, max_tokens=898) == [200]
        refused = burst(gateways, chat_request(max_tokens=198), 50)
        assert {sample.status for sample in refused} == {429}
        assert redis.used("strict") == 900
        upstream.always(b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\n{}")
        assert in_turn(gateways, 3, max_tokens=98) == [500] * 3
        assert redis.used("strict") == 900
        upstream.always(openai_upstream(2, 98))
        assert in_turn(gateways, 2, max_tokens=98) == [200, 429]


class TestConcurrency:
    def test_slots_are_shared(self, replicas, redis, upstream):
        gateways = replicas(3, resources(upstream.origin, key_limit={"concurrency": 10}))
        gate = Gate()
        upstream.always(gate, openai_upstream())
        opener = [gateways[turn % 3].connect() for turn in range(10)]
        for connection in opener:
            connection.ask("POST", "/v1/chat/completions", body=chat_body(), key=KEY)
        upstream.wait_for(10)
        assert {sample.status for sample in at_once(gateways, chat_request(), 6)} == {429}
        assert len(redis.leases(POLICY)) == 10
        gate.open()
        assert {connection.answer().read().status for connection in opener} == {200}
        assert redis.leases(POLICY) == []

    def test_answers_in_a_row_find_the_slot_free(self, replicas, upstream):
        gateways = replicas(2, resources(upstream.origin, key_limit={"concurrency": 1}))
        connections = [Connection(gateway.port) for gateway in gateways]
        for turn in range(200):
            body = chat_body(stream=turn % 4 < 2)
            connection = connections[turn % 2]
            connection.ask("POST", "/v1/chat/completions", body=body, key=KEY)
            assert connection.answer().read().status == 200, turn


class TestWaiting:
    """What a refusal by one replica tells is true for the others, too."""

    EARLY = 0.05

    @pytest.mark.parametrize(
        "algorithm", ["fixed_window", "sliding_window", "sliding_log", "token_bucket"]
    )
    def test_as_told_is_enough_and_less_is_not(self, replicas, upstream, algorithm):
        quota = limit("requests", 1, "1s", algorithm)
        one, two, three = replicas(3, resources(upstream.origin, key_limit=[quota]))
        for _ in range(TRIES):
            until(lambda: one.chat().status == 200, "admitted", 3)
            sent = time.time()
            refused = two.chat()
            told = time.time()
            if refused.status == 200:
                continue  # the next window had begun
            wait = int(refused.headers["retry-after-ms"]) / 1000
            if wait < 3 * self.EARLY:
                continue
            sleep_until(sent + wait - self.EARLY)
            early = three.chat()
            if time.time() >= sent + wait - 0.001:
                continue  # this machine was too slow to tell early from late
            assert early.status == 429
            sleep_until(told + wait)
            assert three.chat().status == 200
            return
        raise AssertionError("too slow to be told, every time")
