"""Streams go on byte for byte and at once, and are metered wherever the network cuts them."""

import gzip
import json
import zlib

import pytest

from support.gateway import KEY, chat_body, limit, resources
from support.openai_shapes import (
    LAST_CHUNK,
    STREAM_HEAD,
    chunk,
    completion,
    event,
    stream_chunk,
    stream_events,
    streamed,
    usage,
    whole,
)
from support.upstream import CLOSE, Gate

LINE_ENDS = {"LF": "\n", "CRLF": "\r\n", "CR": "\r"}
WORDS = ("Hi ", "🦊 ", "data: ", "ünï", 'quo"te\\', "漢字", " end")
ASKS_USAGE = {"stream_options": {"include_usage": True}}


@pytest.fixture(params=list(LINE_ENDS.values()), ids=list(LINE_ENDS))
def line_end(request):
    return request.param


def transcript(end, tokens=(17, 42)):
    """The bytes of a whole stream: with a comment, an event name, and the usage at its end."""
    events = stream_events(WORDS, usage(*tokens), end)
    comment = f": keep-alive{end}{end}".encode()
    named = b"event: message" + end.encode() + events[0]
    return b"".join([comment, named, *events[1:]])


def in_pieces(*pieces):
    """A stream whose chunks are these."""
    return [STREAM_HEAD, *(chunk(piece) for piece in pieces), LAST_CHUNK]


class TestCutAnywhere:
    def test_byte_by_byte(self, gateway, upstream, line_end):
        sent = transcript(line_end)
        steps = [part for i in range(len(sent)) for part in (chunk(sent[i : i + 1]), 0.0005)]
        upstream.once(STREAM_HEAD, *steps, LAST_CHUNK)
        assert gateway.start_stream(**ASKS_USAGE).read().body == sent
        assert gateway.tokens() == (17, 42)

    def test_cut_in_two_at_every_byte(self, gateway, upstream, line_end):
        """Of the parts that matter: the first event with its emoji, and the usage."""
        events = stream_events(["a🦊b"], usage(17, 42), line_end)
        sent = b"".join(events)
        first, last = len(events[0]), len(sent)
        cuts = [*range(first - 45, first + 12), *range(last - 110, last)]
        with gateway.connect() as connection:
            for cut in cuts:
                upstream.once(*in_pieces(sent[:cut], sent[cut:]))
                body = chat_body(stream=True, **ASKS_USAGE)
                connection.ask("POST", "/v1/chat/completions", body=body, key=KEY)
                assert connection.answer().read().body == sent, cut
        assert gateway.tokens() == (17 * len(cuts), 42 * len(cuts))

    def test_all_in_one_piece(self, gateway, upstream, line_end):
        sent = transcript(line_end)
        upstream.once(*in_pieces(sent))
        assert gateway.start_stream(**ASKS_USAGE).read().body == sent
        assert gateway.tokens() == (17, 42)

    def test_event_of_five_megabytes(self, gateway, upstream):
        sent = event(stream_chunk("x" * 5_000_000)) + transcript("\n")
        before = gateway.peak_bytes()
        pieces = [sent[i : i + 65536] for i in range(0, len(sent), 65536)]
        upstream.once(*in_pieces(*pieces))
        assert gateway.start_stream().read().body == without_usage(sent)
        assert gateway.tokens() == (17, 42)
        assert gateway.peak_bytes() - before < 3_000_000


def without_usage(sent, end="\n"):
    hidden = event(stream_chunk(usage=usage(17, 42)), end)
    assert sent.count(hidden) == 1
    return sent.replace(hidden, b"")


class TestUsageIsForced:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"stream_options": {"include_usage": False}},
            {"stream_options": {}},
            {"stream_options": None},
        ],
    )
    def test_and_hidden_from_who_did_not_ask(self, gateway, upstream, line_end, options):
        sent = transcript(line_end)
        steps = [part for i in range(0, len(sent), 7) for part in (chunk(sent[i : i + 7]), 0.0005)]
        upstream.once(STREAM_HEAD, *steps, LAST_CHUNK)
        assert gateway.start_stream(**options).read().body == without_usage(sent, line_end)
        assert upstream.last.json()["stream_options"]["include_usage"] is True
        assert gateway.tokens() == (17, 42)

    def test_and_shown_to_who_asked(self, gateway, upstream, line_end):
        sent = transcript(line_end)
        upstream.once(*in_pieces(sent))
        assert gateway.start_stream(**ASKS_USAGE).read().body == sent
        assert upstream.last.json()["stream_options"] == {"include_usage": True}

    def test_other_options_stay(self, gateway, upstream):
        options = {"stream_options": {"include_obfuscation": False}}
        gateway.start_stream(**options).read()
        assert upstream.last.json()["stream_options"] == {
            "include_obfuscation": False,
            "include_usage": True,
        }

    def test_usage_beside_text_is_not_hidden(self, gateway, upstream):
        """Some upstreams tell a running total with every word."""
        events = [event(stream_chunk(word, usage=usage(9, n + 1))) for n, word in enumerate("abc")]
        upstream.once(*streamed(*events, event("[DONE]")))
        assert gateway.start_stream().read().body == b"".join([*events, event("[DONE]")])
        assert gateway.tokens() == (9, 3)


class TestAtOnce:
    @pytest.mark.parametrize("options", [{}, ASKS_USAGE])
    def test_each_event_arrives_before_the_next_is_sent(self, gateway, upstream, options):
        gates = [Gate() for _ in range(4)]
        events = [event(stream_chunk(f"word {n}")) for n in range(4)]
        steps = [step for pair in zip(events, gates, strict=True) for step in pair]
        upstream.once(*streamed(*steps, event("[DONE]")))
        stream = gateway.start_stream(**options)
        for n, gate in enumerate(gates):
            stream.read_until(events[n])
            gate.open()
        assert stream.read().body == b"".join([*events, event("[DONE]")])

    def test_part_of_an_event_arrives_before_the_rest(self, gateway, upstream):
        gate = Gate()
        whole_event = event(stream_chunk("a long text that comes in two parts"))
        upstream.once(*streamed(whole_event[:-30], gate, whole_event[-30:], event("[DONE]")))
        stream = gateway.start_stream(**ASKS_USAGE)
        stream.read_until(whole_event[:-30])
        gate.open()
        assert stream.read().body == whole_event + event("[DONE]")

    def test_head_arrives_before_the_first_event(self, gateway, upstream):
        gate = Gate()
        upstream.once(*streamed(gate, event("[DONE]")))
        stream = gateway.start_stream()
        assert stream.status == 200
        assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
        gate.open()
        stream.read()

    def test_body_that_ends_with_its_connection(self, gateway, upstream):
        sent = transcript("\n")
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
        upstream.once(head, sent, CLOSE)
        assert gateway.start_stream(**ASKS_USAGE).read().body == sent
        assert gateway.tokens() == (17, 42)

    def test_trailers_are_left_out(self, gateway, upstream):
        sent = transcript("\n")
        upstream.once(STREAM_HEAD, chunk(sent), b"0\r\nX-Checksum: 1\r\n\r\n")
        assert gateway.start_stream(**ASKS_USAGE).read().body == sent

    def test_client_of_http_1_0_gets_no_chunks(self, gateway, upstream):
        sent = transcript("\n")
        upstream.once(*in_pieces(sent[:50], sent[50:]))
        body = json.dumps(chat_body(stream=True, **ASKS_USAGE)).encode()
        head = (
            "POST /v1/chat/completions HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n"
            f"Authorization: Bearer {KEY}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with gateway.connect() as connection:
            answer = connection.send(head.encode() + body).answer().read()
            assert "transfer-encoding" not in answer.headers
            assert answer.body == sent


class TestUsageInAnyShape:
    def test_spread_over_events_and_running(self, gateway, upstream):
        """Input in the first event; the output is a running total: 1, 20, 50."""
        events = [
            event(stream_chunk("a", usage={"prompt_tokens": 1000, "completion_tokens": 1})),
            event(stream_chunk("b", usage={"completion_tokens": 20})),
            event(stream_chunk("c", usage={"completion_tokens": 50})),
            event("[DONE]"),
        ]
        upstream.once(*streamed(*events))
        assert gateway.start_stream().read().body == b"".join(events)
        assert gateway.tokens() == (1000, 50)

    def test_total_in_the_last_chunk(self, gateway, upstream):
        upstream.once(*streamed(*stream_events(["a"], usage(1000, 50))))
        gateway.start_stream().read()
        assert gateway.tokens() == (1000, 50)

    def test_cached_and_reasoning_parts_are_kept_apart(self, gateway, upstream):
        tokens = usage(
            100,
            40,
            prompt_tokens_details={"cached_tokens": 60},
            completion_tokens_details={"reasoning_tokens": 30},
        )
        upstream.once(whole(completion("text", tokens)))
        gateway.chat()
        assert gateway.tokens() == (100, 40)
        kinds = ("cached_input", "reasoning_output")
        found = [gateway.metric("stint_tokens_total", kind=kind, model="chat") for kind in kinds]
        assert found == [60, 30]

    @pytest.mark.parametrize(
        "tokens",
        [
            None,
            {"prompt_tokens": -5, "completion_tokens": -5, "total_tokens": -10},
            {"prompt_tokens": "7", "completion_tokens": "7"},
            {"prompt_tokens": None, "completion_tokens": None},
            {"prompt_tokens": 1.5, "completion_tokens": 1e300},
            [],
            "many",
        ],
        ids=["none", "negative", "strings", "nulls", "fractions", "list", "text"],
    )
    @pytest.mark.parametrize("stream", [False, True])
    def test_unusable_usage_is_replaced_by_an_estimate(self, start, upstream, tokens, stream):
        gateway = start(resources(upstream.origin, key_limit={"tpd": 1000}))
        text = "x" * 40
        if stream:
            events = [event(stream_chunk(text))]
            if tokens is not None:
                events.append(event(stream_chunk(usage=tokens)))
            upstream.once(*streamed(*events, event("[DONE]")))
        else:
            upstream.once(whole(completion(text, tokens)))
        assert gateway.chat("y" * 20, stream=stream).status == 200
        # A quarter of the bytes of either text.
        assert gateway.tokens() == (5, 10)
        assert gateway.metric("stint_unmetered_replies_total", model="chat") == 1
        assert left_of(gateway) == 1000 - 15

    def test_error_answers_cost_nothing(self, start, upstream):
        gateway = start(resources(upstream.origin, key_limit={"tpd": 1000}))
        upstream.once(whole({"error": {"message": "no"}, "usage": usage(500, 500)}, status=400))
        assert gateway.chat().status == 400
        assert gateway.tokens() == (0, 0)
        assert left_of(gateway) == 1000


def left_of(gateway, key=KEY):
    """What is left of the key's tokens, by a request that is itself worth one token."""
    answer = gateway.post("/v1/embeddings", {"model": "embed", "input": "x"}, key)
    return int(answer.headers["x-ratelimit-remaining-tokens"]) + 1


class TestCompressed:
    """An upstream that compresses although it was not asked to."""

    CODINGS = {"gzip": gzip.compress, "deflate": zlib.compress}

    @pytest.mark.parametrize("coding", CODINGS)
    def test_plain_answer_is_metered_and_goes_on_as_it_is(self, gateway, upstream, coding):
        packed = self.CODINGS[coding](json.dumps(completion("text", usage(21, 8))).encode())
        upstream.once(whole(packed, fields=[("Content-Encoding", coding)]))
        answer = gateway.chat()
        assert answer.body == packed
        assert answer.headers["content-encoding"] == coding
        assert gateway.tokens() == (21, 8)

    def test_stream_is_metered_and_goes_on_as_it_is(self, gateway, upstream):
        packed = gzip.compress(b"".join(stream_events(WORDS, usage(21, 8))))
        head = STREAM_HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
        pieces = [chunk(packed[i : i + 11]) for i in range(0, len(packed), 11)]
        upstream.once(head, *pieces, LAST_CHUNK)
        assert gateway.start_stream().read().body == packed
        assert gateway.tokens() == (21, 8)

    def test_the_upstream_is_asked_not_to(self, gateway, upstream):
        gateway.post("/v1/chat/completions", chat_body(), headers={"Accept-Encoding": "gzip"})
        assert upstream.last.headers["accept-encoding"] == "identity"


def test_committed_tokens_are_what_the_next_request_finds(start, upstream):
    gateway = start(resources(upstream.origin, key_limit=[limit("tokens", 100_000, "1d")]))
    upstream.once(*in_pieces(transcript("\n", (1234, 567))))
    gateway.start_stream().read()
    assert left_of(gateway) == 100_000 - 1234 - 567
