"""Requests, tokens and requests in flight are limited as configured, and refusals say so."""

import time

import pytest

from support.client import Timed
from support.gateway import KEY, chat_body, limit, model, resources
from support.openai_shapes import event, openai_upstream, stream_chunk, streamed
from support.poll import room_in_window, until
from support.upstream import Gate

MINUTE = 60


def statuses(gateway, count, **ask):
    return [gateway.chat(**ask).status for _ in range(count)]


class TestRequests:
    def test_one_a_minute(self, start, upstream):
        gateway = start(resources(upstream.origin, key_limit={"rpm": 1}))
        room_in_window(MINUTE, 2)
        assert statuses(gateway, 2) == [200, 429]
        assert len(upstream.received) == 1

    def test_refusal(self, start, upstream):
        gateway = start(resources(upstream.origin, key_limit={"rpm": 1}))
        room_in_window(MINUTE, 2)
        assert gateway.chat().status == 200
        refused = gateway.chat()
        assert refused.status == 429
        wait_ms = int(refused.headers["retry-after-ms"])
        assert 0 < wait_ms <= 60_000
        assert refused.headers["retry-after"] == str(-(-wait_ms // 1000))
        name = '"api_keys/test key-requests-60s"'
        assert refused.headers["ratelimit-policy"] == f'{name};q=1;qu="requests";w=60'
        assert refused.headers["ratelimit"].startswith(f"{name};r=0;t=")
        assert refused.headers["x-ratelimit-limit-requests"] == "1"
        assert refused.headers["x-ratelimit-remaining-requests"] == "0"
        assert refused.headers["x-ratelimit-reset-requests"]
        assert "x-stint-refused-by" not in refused.headers
        error = refused.error()
        assert error["message"].startswith("request limit exceeded (requests)")
        assert (error["type"], error["code"]) == ("rate_limit_exceeded", "rate_limit_exceeded")
        assert error["policy"]["name"] == "api_keys/test key"
        assert error["rate_limit"] == {
            "unit": "requests",
            "quota": 1,
            "window_secs": 60,
            "remaining": 0,
            "retry_after_ms": wait_ms,
        }

    def test_quota_of_zero_never_fits(self, start, upstream):
        gateway = start(resources(upstream.origin, key_limit={"rpm": 0}))
        refused = gateway.chat()
        assert refused.status == 429
        assert refused.error()["code"] == "never_fits"
        assert "retry-after" not in refused.headers
        assert refused.headers["x-should-retry"] == "false"
        assert upstream.received == []

    def test_waiting_as_told_is_enough(self, start, upstream):
        gateway = start(resources(upstream.origin, key_limit=[limit("requests", 2, "2s")]))
        room_in_window(2, 1.5)
        assert statuses(gateway, 3) == [200, 200, 429]
        wait = int(gateway.chat().headers["retry-after-ms"]) / 1000
        with Timed() as took:
            until(lambda: gateway.chat().status == 200, "admitted again", wait + 1)
        assert took.seconds <= wait + 0.5

    def test_keys_do_not_share(self, start, upstream):
        keys = [
            {"key": key, "allowed_models": ["*"], "rate_limit": {"rpd": 1}}
            for key in ("sk-one", "sk-two")
        ]
        gateway = start(resources(upstream.origin, keys=keys))
        assert statuses(gateway, 2, key="sk-one") == [200, 429]
        assert statuses(gateway, 2, key="sk-two") == [200, 429]

    def test_refused_requests_charge_no_other_limit(self, start, upstream):
        keys = [
            {"key": "sk-busy", "allowed_models": ["*"], "rate_limit": {"rpd": 2}},
            {"key": "sk-other", "allowed_models": ["*"]},
        ]
        rows = resources(upstream.origin, keys=keys)
        rows["models"] = [model("chat", rate_limit={"rpd": 10})]
        gateway = start(rows)
        assert statuses(gateway, 20, key="sk-busy") == [200] * 2 + [429] * 18
        assert statuses(gateway, 9, key="sk-other") == [200] * 8 + [429]

    def test_members_of_a_team_each_have_their_own(self, start, upstream):
        keys = [
            {"key": f"sk-{n}", "allowed_models": ["*"], "team_id": team, "user_id": user}
            for n, team, user in (
                ("1a", "red", "ann"),
                ("1b", "red", "ann"),
                ("2", "red", "bob"),
                ("3", "blue", "ann"),
            )
        ]
        policies = [
            {
                "name": "red members",
                "scope": "team_member",
                "scope_ref": "red",
                "window": "day",
                "max_requests": 2,
            }
        ]
        gateway = start(resources(upstream.origin, keys=keys, rate_limit_policies=policies))
        assert statuses(gateway, 1, key="sk-1a") == [200]
        assert statuses(gateway, 2, key="sk-1b") == [200, 429]
        assert statuses(gateway, 3, key="sk-2") == [200, 200, 429]
        assert statuses(gateway, 4, key="sk-3") == [200] * 4

    def test_general_policy_with_conditions_and_a_header(self, start, upstream):
        policies = [
            {
                "name": "free plan",
                "conditions": [{"dimension": "header:x-plan", "operator": "==", "value": "free"}],
                "group_by": ["api_key"],
                "limits": {"rpd": 1},
            }
        ]
        gateway = start(resources(upstream.origin, rate_limit_policies=policies))
        free = {"body": chat_body(), "headers": {"X-Plan": "free"}}
        assert [gateway.post("/v1/chat/completions", **free).status for _ in range(2)] == [200, 429]
        assert statuses(gateway, 2) == [200, 200]

    def test_shadow_policy_refuses_nobody(self, start, upstream):
        policies = [
            {"name": "trial", "mode": "shadow", "group_by": ["api_key"], "limits": {"rpd": 1}}
        ]
        gateway = start(resources(upstream.origin, rate_limit_policies=policies))
        assert statuses(gateway, 3) == [200] * 3
        assert gateway.metric("stint_decisions_total", outcome="shadow_refused") == 2

    def test_wrong_keys_are_counted_by_what_is_asked_before(self, start, upstream):
        policies = [{"name": "address", "group_by": ["client_ip"], "limits": {"rpd": 3}}]
        gateway = start(resources(upstream.origin, rate_limit_policies=policies))
        assert statuses(gateway, 4, key="sk-guessed") == [401, 401, 401, 429]
        assert statuses(gateway, 1) == [429]
        assert upstream.received == []

    def test_wrong_keys_are_counted_on_the_list_of_models_too(self, start, upstream):
        policies = [{"name": "address", "group_by": ["client_ip"], "limits": {"rpd": 3}}]
        gateway = start(resources(upstream.origin, rate_limit_policies=policies))

        def listed(key):
            return gateway.request("GET", "/v1/models", key=key).status

        assert [listed(KEY) for _ in range(5)] == [200] * 5
        assert [listed("sk-guessed") for _ in range(5)] == [401, 401, 401, 429, 429]
        assert gateway.request("GET", "/v1/chat/completions").status == 429
        assert listed(KEY) == 200

    def test_the_wait_is_the_longest_of_what_is_asked_before_and_after(self, start, upstream):
        policies = [
            {
                "name": "address",
                "group_by": ["client_ip"],
                "limits": [limit("requests", 1, "1s", "sliding_log")],
            }
        ]
        key_limit = [limit("requests", 1, "4s", "sliding_log")]
        rows = resources(upstream.origin, key_limit=key_limit, rate_limit_policies=policies)
        gateway = start(rows)
        assert statuses(gateway, 1) == [200]
        refused = gateway.chat()
        assert refused.status == 429
        assert refused.error()["policy"]["name"] == "api_keys/test key"
        wait_ms = int(refused.headers["retry-after-ms"])
        assert wait_ms > 1500
        time.sleep(wait_ms / 1000 + 0.01)
        assert statuses(gateway, 1) == [200]

    def test_later_refusal_gives_back_what_was_asked_before(self, start, upstream):
        policies = [{"name": "address", "group_by": ["client_ip"], "limits": {"rpd": 10}}]
        keys = [
            {"key": "sk-busy", "allowed_models": ["*"], "rate_limit": {"rpd": 1}},
            {"key": "sk-other", "allowed_models": ["*"]},
        ]
        gateway = start(resources(upstream.origin, keys=keys, rate_limit_policies=policies))
        assert statuses(gateway, 20, key="sk-busy") == [200] + [429] * 19
        assert statuses(gateway, 10, key="sk-other") == [200] * 9 + [429]

    def test_decision_shows_while_a_stream_still_runs(self, start, upstream):
        gateway = start(resources(upstream.origin, key_limit={"rpd": 9}))
        gate = Gate()
        upstream.once(*streamed(event(stream_chunk("One")), gate, event("[DONE]")))
        stream = gateway.start_stream()
        assert gateway.metric("stint_decisions_total", policy="all", outcome="admitted") == 1
        gate.open()
        stream.read()
        assert gateway.metric("stint_decisions_total", policy="all", outcome="admitted") == 1

    def test_decisions_are_counted(self, start, upstream):
        gateway = start(resources(upstream.origin, key_limit={"rpd": 2}))
        assert statuses(gateway, 5) == [200, 200, 429, 429, 429]
        counted = "stint_decisions_total"
        assert gateway.metric(counted, policy="all", outcome="admitted") == 2
        assert gateway.metric(counted, policy="all", outcome="refused") == 3
        assert gateway.metric("stint_rejections_total", unit="requests") == 3


class TestConcurrency:
    @pytest.fixture
    def one_at_a_time(self, start, upstream):
        return start(resources(upstream.origin, key_limit={"concurrency": 1}))

    def test_slot_is_taken_until_the_last_byte(self, one_at_a_time, upstream):
        gate, last = Gate(), event("[DONE]")
        upstream.once(*streamed(event(stream_chunk("One")), gate, last))
        stream = one_at_a_time.start_stream()
        stream.read_until(b"One")
        refused = one_at_a_time.chat()
        assert refused.status == 429
        assert refused.error()["code"] == "concurrency_limit_exceeded"
        assert refused.headers["retry-after"] == "1"
        gate.open()
        stream.read()
        assert stream.body.endswith(last)
        assert one_at_a_time.chat().status == 200

    def test_answers_in_a_row_find_the_slot_free(self, one_at_a_time):
        """Whoever has read the last byte is not refused because of that request."""
        with one_at_a_time.connect() as connection:
            for turn in range(200):
                body = chat_body(stream=turn % 2 == 0)
                connection.ask("POST", "/v1/chat/completions", body=body, key=KEY)
                assert connection.answer().read().status == 200, turn

    def test_slot_is_free_when_the_end_of_a_stream_was_seen(self, one_at_a_time, upstream):
        """Even while the upstream has not ended its body yet."""
        gate = Gate()
        head, *body = streamed(event(stream_chunk("One")), event("[DONE]"))
        upstream.once(head, *body[:-1], gate, body[-1])
        stream = one_at_a_time.start_stream()
        stream.read_until(b"[DONE]\n\n")
        assert one_at_a_time.chat().status == 200
        gate.open()
        stream.read()

    def test_slot_is_free_soon_after_the_client_hung_up(self, one_at_a_time, upstream):
        upstream.once(*streamed(event(stream_chunk("One")), Gate()))
        stream = one_at_a_time.start_stream()
        stream.read_until(b"One")
        assert one_at_a_time.chat().status == 429
        stream.close()
        until(lambda: one_at_a_time.chat().status == 200, "the slot is free", 1)

    def test_exactly_the_quota_at_once(self, start, upstream):
        gateway = start(resources(upstream.origin, key_limit={"concurrency": 10}))
        gate = Gate()
        upstream.always(*streamed(event(stream_chunk("One")), gate, event("[DONE]")))
        streams = [gateway.start_stream() for _ in range(12)]
        assert sorted(stream.status for stream in streams) == [200] * 10 + [429] * 2
        assert gateway.metric("stint_leases_held") == 10
        gate.open()
        for stream in streams:
            stream.read()
        gateway.wait_idle()

    def test_long_stream_keeps_its_slot(self, start, upstream):
        """Past the time after which the slot of a crashed holder would come back."""
        gateway = start(
            resources(upstream.origin, key_limit={"concurrency": 1}),
            {"ratelimit": {"concurrency_ttl_secs": 3}},
        )
        gate = Gate()
        upstream.once(*streamed(event(stream_chunk("One")), 3.5, event(stream_chunk("Two")), gate))
        stream = gateway.start_stream()
        stream.read_until(b"Two")
        assert gateway.chat().status == 429
        gate.open()
        stream.close()


class TestTokens:
    @pytest.mark.parametrize("stream", [False, True])
    def test_answers_of_eight_against_ten_a_minute(self, start, upstream, stream):
        gateway = start(resources(upstream.origin, key_limit={"tpm": 10}))
        room_in_window(MINUTE, 2)
        assert statuses(gateway, 3, stream=stream) == [200, 200, 429]
        assert gateway.tokens() == (6, 10)
        refused = gateway.chat()
        assert refused.error()["message"].startswith("token limit exceeded")
        assert refused.error()["code"] == "token_limit_exceeded"
        assert refused.error()["rate_limit"]["unit"] == "tokens"
        assert refused.headers["x-ratelimit-limit-tokens"] == "10"
        assert refused.headers["x-ratelimit-remaining-tokens"] == "0"

    def test_in_parallel_the_overshoot_is_one_request(self, start, upstream):
        """What is admitted counts before its answer has come."""
        gateway = start(resources(upstream.origin, key_limit={"tpd": 300}))
        gate = Gate()
        ask = {"max_tokens": 150}
        upstream.always(gate, openai_upstream(5, 140))
        connections = [gateway.connect() for _ in range(6)]
        for connection in connections:
            connection.ask("POST", "/v1/chat/completions", body=chat_body(**ask), key=KEY)
        upstream.wait_for(2)
        gate.open()
        found = sorted(connection.answer().read().status for connection in connections)
        assert found == [200] * 2 + [429] * 4

    def test_reserve_needs_room_for_the_whole_answer(self, start, upstream):
        policies = [
            {
                "name": "strict",
                "group_by": ["api_key"],
                "token_admission": "reserve",
                "limits": {"tpd": 100},
            }
        ]
        gateway = start(resources(upstream.origin, rate_limit_policies=policies))
        assert gateway.chat(max_tokens=80).status == 200  # 8 used
        assert gateway.chat(max_tokens=80).status == 200  # 16 used
        assert gateway.chat(max_tokens=90).status == 429
        assert gateway.chat(max_tokens=20).status == 200

    def test_embeddings_count_their_input(self, start, upstream):
        gateway = start(resources(upstream.origin, key_limit={"tpd": 5}))
        body = {"model": "embed", "input": "some text"}
        answers = [gateway.post("/v1/embeddings", body).status for _ in range(3)]
        assert answers == [200, 200, 429]
        assert gateway.tokens("embed") == (6, 0)

    def test_failed_calls_cost_no_tokens(self, start, upstream):
        gateway = start(resources(upstream.origin, key_limit={"tpd": 10}))
        upstream.always(b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\n{}")
        assert statuses(gateway, 5) == [500] * 5
        upstream.always(openai_upstream())
        assert statuses(gateway, 3) == [200, 200, 429]

    def test_headers_on_a_stream(self, start, upstream):
        gateway = start(resources(upstream.origin, key_limit={"rpd": 9, "tpd": 1000}))
        upstream.once(*streamed(event(stream_chunk("One")), event("[DONE]")))
        stream = gateway.start_stream().read()
        assert stream.headers["x-ratelimit-remaining-requests"] == "8"
        assert stream.headers["x-ratelimit-limit-tokens"] == "1000"
        assert "ratelimit" in stream.headers

    def test_the_upstreams_own_limits_do_not_show(self, start, upstream):
        gateway = start(resources(upstream.origin, key_limit={"rpd": 9}))
        fields = 'x-ratelimit-limit-tokens: 77\r\nRateLimit: "theirs";r=1\r\nX-Kept: yes\r\n'
        upstream.once(f"HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\n{{}}".encode())
        answer = gateway.chat()
        assert answer.headers["x-kept"] == "yes"
        assert "x-ratelimit-limit-tokens" not in answer.headers
        assert "theirs" not in answer.headers["ratelimit"]
