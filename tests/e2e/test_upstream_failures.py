"""Whatever an upstream does wrong: the client is told, and nothing stays taken."""

import pytest

from support.client import Closed, Connection, Timed
from support.gateway import KEY, chat_body, model, resources
from support.openai_shapes import (
    STREAM_HEAD,
    chunk,
    completion,
    event,
    openai_upstream,
    stream_chunk,
    usage,
    whole,
)
from support.poll import until
from support.upstream import CLOSE, HANG, RESET, Gate, refusing_port, silent_port

SHORT = {"upstream": {"connect_timeout_ms": 400, "timeout_ms": 400, "stream_timeout_ms": 400}}
LIMITS = {"concurrency": 1, "tpd": 100_000}
HEAD_OF_1000 = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
HEAD_OF_A_MILLION = HEAD_OF_1000.replace(b"1000", b"1000000")
ONE_EVENT = [STREAM_HEAD, chunk(event(stream_chunk("One")))]

# What the upstream does before a byte went to the client, and what the client is told.
BEFORE_THE_FIRST_BYTE = {
    "resets before the head": ([RESET], 502, "upstream_failed"),
    "closes before the head": ([CLOSE], 502, "upstream_failed"),
    "closes within the head": ([b"HTTP/1.1 200 OK\r\nConte", CLOSE], 502, "upstream_failed"),
    "sends no HTTP": ([b"SSH-2.0-OpenSSH_9.2\r\n\r\n", HANG], 502, "upstream_malformed"),
    "contradicts itself": (
        [b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", HANG],
        502,
        "upstream_malformed",
    ),
    "switches protocols": (
        [b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n", HANG],
        502,
        "upstream_malformed",
    ),
    "sends an endless head": (
        [b"HTTP/1.1 200 OK\r\nX-A: ", b"a" * 200_000, HANG],
        502,
        "upstream_malformed",
    ),
    "never answers": ([HANG], 504, "upstream_timeout"),
    "never ends the head": ([b"HTTP/1.1 200 OK\r\nConte", HANG], 504, "upstream_timeout"),
    "resets a short answer": ([HEAD_OF_1000, b"{", RESET], 502, "upstream_failed"),
    "never ends a short answer": ([HEAD_OF_1000, b"{", HANG], 504, "upstream_timeout"),
}


@pytest.fixture
def gateway(start, upstream):
    """One request at a time, and tokens that are counted; short time-outs."""
    return start(resources(upstream.origin, key_limit=LIMITS), SHORT)


def assert_nothing_taken(gateway, upstream):
    """The slot is free at once, and nothing is in flight when the last byte is out."""
    upstream.always(openai_upstream())
    assert gateway.chat().status == 200
    gateway.wait_idle()


class TestBeforeTheFirstByte:
    @pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
    @pytest.mark.parametrize("failure", BEFORE_THE_FIRST_BYTE)
    def test_it(self, gateway, upstream, failure, stream):
        steps, status, code = BEFORE_THE_FIRST_BYTE[failure]
        upstream.always(*steps)
        with Timed() as took:
            answer = gateway.chat(stream=stream)
        assert answer.status == status
        assert answer.error()["code"] == code
        assert answer.headers["x-ratelimit-limit-tokens"] == "100000"
        assert took.seconds < 2
        assert len(upstream.received) == 1, "a chat is sent once"
        assert_nothing_taken(gateway, upstream)

    def test_refused_connection_is_502(self, start, upstream):
        holder, port = refusing_port()
        with holder:
            gateway = start(resources(f"http://127.0.0.1:{port}", key_limit=LIMITS), SHORT)
            for _ in range(3):
                answer = gateway.chat()
                assert answer.status == 502
                assert answer.error()["code"] == "upstream_failed"
        gateway.wait_idle()

    def test_connection_that_nobody_takes_is_502(self, start):
        sockets, port = silent_port()
        gateway = start(resources(f"http://127.0.0.1:{port}", key_limit={"concurrency": 1}), SHORT)
        with Timed() as took:
            assert gateway.chat().status == 502
        assert took.seconds < 2
        gateway.wait_idle()
        for one in sockets:
            one.close()

    def test_name_that_does_not_resolve_is_502(self, start):
        gateway = start(resources("http://nowhere.invalid", key_limit={"concurrency": 1}), SHORT)
        with Timed() as took:
            assert gateway.chat().status == 502
        assert took.seconds < 2
        gateway.wait_idle()

    def test_failures_cost_no_tokens(self, start, upstream):
        gateway = start(resources(upstream.origin, key_limit={"tpd": 10}), SHORT)
        upstream.always(RESET)
        assert [gateway.chat().status for _ in range(4)] == [502] * 4
        upstream.always(openai_upstream())
        assert [gateway.chat().status for _ in range(3)] == [200, 200, 429]

    def test_a_models_own_time_out(self, start, upstream):
        rows = resources(upstream.origin, models=[model("chat", timeout="1s")])
        gateway = start(rows, {"upstream": {"timeout_ms": 60_000}})
        upstream.once(HANG)
        with Timed() as took:
            assert gateway.chat().status == 504
        assert 0.9 < took.seconds < 3

    def test_kept_connection_that_was_closed_meanwhile_is_not_the_clients_fault(
        self, gateway, upstream
    ):
        upstream.once(whole(completion("a", usage(1, 1))), CLOSE)
        assert gateway.chat().status == 200
        until(lambda: not upstream.connections, "the upstream has closed its connection")
        assert gateway.chat().status == 200


class TestInTheMiddleOfAStream:
    @pytest.mark.parametrize(
        ("end", "code"),
        [(RESET, "upstream_failed"), (CLOSE, "upstream_failed"), (HANG, "upstream_timeout")],
        ids=["reset", "closed", "silent"],
    )
    def test_error_event_in_place_of_the_end(self, gateway, upstream, end, code):
        upstream.once(*ONE_EVENT, end)
        answer = gateway.start_stream().read()
        first = event(stream_chunk("One"))
        assert answer.body.startswith(first)
        rest = answer.body[len(first) :]
        assert rest.startswith(b'data: {"error":') and rest.endswith(b"}\n\n")
        assert code.encode() in rest
        assert b"[DONE]" not in answer.body
        assert_nothing_taken(gateway, upstream)

    def test_within_an_event_that_is_closed_first(self, gateway, upstream):
        upstream.once(*ONE_EVENT, chunk(b'data: {"choices": [{"del'), RESET)
        body = gateway.start_stream(stream_options={"include_usage": True}).read().body
        assert b'{"del\n\ndata: {"error":' in body
        assert b"[DONE]" not in body
        assert_nothing_taken(gateway, upstream)

    def test_end_before_done_is_passed_on_as_it_is(self, gateway, upstream):
        """Its framing says that the body is whole: nothing broke."""
        upstream.once(*ONE_EVENT, b"0\r\n\r\n")
        assert gateway.start_stream().read().body == event(stream_chunk("One"))
        assert_nothing_taken(gateway, upstream)

    def test_what_was_delivered_is_charged(self, start, upstream):
        gateway = start(resources(upstream.origin, key_limit={"tpd": 1000}))
        upstream.once(STREAM_HEAD, chunk(event(stream_chunk("x" * 40))), RESET)
        gateway.start_stream("y" * 20).read()
        assert gateway.tokens() == (5, 10)

    def test_broken_chunks(self, gateway, upstream):
        upstream.once(*ONE_EVENT, b"zz\r\nhello\r\n", HANG)
        body = gateway.start_stream().read().body
        assert b"upstream_malformed" in body
        assert_nothing_taken(gateway, upstream)

    def test_idle_time_out_does_not_limit_the_whole(self, gateway, upstream):
        events = [event(stream_chunk(f"{n}")) for n in range(6)]
        steps = [part for one in events for part in (chunk(one), 0.15)]
        upstream.once(STREAM_HEAD, *steps, b"0\r\n\r\n")
        with Timed() as took:
            assert gateway.start_stream().read().body == b"".join(events)
        assert took.seconds > 0.8


def test_long_plain_answer_that_breaks_is_cut_for_the_client_too(gateway, upstream):
    upstream.once(HEAD_OF_A_MILLION, b"x" * 100_000, RESET)
    with gateway.connect() as connection:
        connection.ask("POST", "/v1/chat/completions", body=chat_body(), key=KEY)
        answer = connection.answer()
        assert answer.status == 200
        with pytest.raises(Closed):
            answer.read()
    assert_nothing_taken(gateway, upstream)


class TestRefusalByTheUpstream:
    def test_is_passed_on_and_marked(self, gateway, upstream):
        body = {"error": {"message": "slow down", "code": "theirs"}}
        fields = [("Retry-After", "17"), ("retry-after-ms", "16500")]
        upstream.once(whole(body, status=429, fields=fields))
        answer = gateway.chat()
        assert answer.status == 429
        assert answer.headers["retry-after"] == "17"
        assert answer.headers["retry-after-ms"] == "16500"
        assert answer.headers["x-stint-refused-by"] == "upstream"
        assert answer.json() == body
        assert gateway.tokens() == (0, 0)
        assert gateway.metric("stint_rejections_total") == 0
        assert_nothing_taken(gateway, upstream)

    def test_nobody_else_can_claim_the_mark(self, gateway, upstream):
        upstream.once(whole({}, fields=[("X-Stint-Refused-By", "somebody")]))
        assert "x-stint-refused-by" not in gateway.chat().headers

    @pytest.mark.parametrize("status", [400, 401, 404, 500, 503, 529])
    def test_other_errors_are_passed_on(self, gateway, upstream, status):
        upstream.once(whole({"error": "theirs"}, status=status))
        answer = gateway.chat()
        assert (answer.status, answer.json()) == (status, {"error": "theirs"})
        assert_nothing_taken(gateway, upstream)


class TestSlotsComeBack:
    """Ten at once for each way to fail; then exactly ten fit again."""

    LIMIT = 10
    FAILURES = {
        "upstream hangs": [HANG],
        "upstream resets": [RESET],
        "upstream says 500": [whole({}, status=500)],
        "upstream breaks a stream": [*ONE_EVENT, RESET],
    }

    @pytest.fixture
    def ten(self, start, upstream):
        return start(resources(upstream.origin, key_limit={"concurrency": self.LIMIT}), SHORT)

    def ask(self, gateway, count, **ask):
        connections = [gateway.connect() for _ in range(count)]
        for connection in connections:
            connection.ask("POST", "/v1/chat/completions", body=chat_body(**ask), key=KEY)
        return connections

    def assert_exactly_ten_fit(self, gateway, upstream):
        gateway.wait_idle()
        gate = Gate()
        upstream.always(*ONE_EVENT, gate, b"0\r\n\r\n")
        answers = [c.answer() for c in self.ask(gateway, self.LIMIT + 2, stream=True)]
        assert sorted(a.status for a in answers) == [200] * self.LIMIT + [429] * 2
        gate.open()
        for answer in answers:
            answer.read()
        gateway.wait_idle()

    @pytest.mark.parametrize("failure", FAILURES)
    def test_after_the_upstream_failed(self, ten, upstream, failure):
        upstream.always(*self.FAILURES[failure])
        stream = failure == "upstream breaks a stream"
        for connection in self.ask(ten, self.LIMIT, stream=stream):
            connection.answer().read()
        self.assert_exactly_ten_fit(ten, upstream)

    @pytest.mark.parametrize("leave", [Connection.close, Connection.reset])
    def test_after_the_clients_left(self, ten, upstream, leave):
        upstream.always(HANG)
        connections = self.ask(ten, self.LIMIT)
        upstream.wait_for(self.LIMIT)
        for connection in connections:
            leave(connection)
        self.assert_exactly_ten_fit(ten, upstream)

    def test_after_malformed_requests(self, ten, upstream):
        for body in (b"not json", b"{}", b'{"model":"nothing"}'):
            for _ in range(self.LIMIT):
                assert ten.post("/v1/chat/completions", body).status in (400, 404)
        self.assert_exactly_ten_fit(ten, upstream)
