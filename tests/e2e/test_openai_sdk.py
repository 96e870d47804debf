"""The official OpenAI SDK, unchanged but for its base_url."""

import openai
import pytest

from support.client import Timed
from support.gateway import KEY, limit, resources
from support.openai_shapes import event, openai_upstream, stream_chunk, streamed
from support.poll import room_in_window
from support.upstream import RESET

HELLO = [{"role": "user", "content": "hello"}]


def sdk(gateway, key=KEY, retries=0):
    return openai.OpenAI(
        base_url=f"http://127.0.0.1:{gateway.port}/v1", api_key=key, max_retries=retries, timeout=10
    )


def test_chat(gateway):
    answer = sdk(gateway).chat.completions.create(model="chat", messages=HELLO)
    assert answer.choices[0].message.content == "One two three"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (3, 5)
    assert gateway.tokens() == (3, 5)


def test_streamed_chat(gateway):
    stream = sdk(gateway).chat.completions.create(model="chat", messages=HELLO, stream=True)
    chunks = list(stream)
    assert "".join(c.choices[0].delta.content for c in chunks) == "One two three"
    assert all(chunk.usage is None for chunk in chunks)
    assert gateway.tokens() == (3, 5)


def test_streamed_chat_with_usage(gateway):
    stream = sdk(gateway).chat.completions.create(
        model="chat", messages=HELLO, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert chunks[-1].choices == []
    assert (chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens) == (3, 5)
    assert gateway.tokens() == (3, 5)


def test_embeddings(gateway):
    answer = sdk(gateway).embeddings.create(model="embed", input=["one", "two"])
    assert [row.embedding for row in answer.data] == [[0.5, -0.25, 0.125]] * 2
    assert answer.usage.prompt_tokens == 3
    assert gateway.tokens("embed") == (3, 0)


def test_model_list(gateway):
    assert [model.id for model in sdk(gateway).models.list()] == ["chat", "embed"]


def test_limits_show_on_a_good_answer(start, upstream):
    gateway = start(resources(upstream.origin, key_limit={"rpd": 7, "tpd": 1000}))
    raw = sdk(gateway).chat.completions.with_raw_response.create(model="chat", messages=HELLO)
    assert raw.headers["x-ratelimit-limit-requests"] == "7"
    assert raw.headers["x-ratelimit-remaining-requests"] == "6"
    assert raw.headers["x-ratelimit-limit-tokens"] == "1000"
    assert raw.headers["x-ratelimit-reset-requests"].endswith("s")
    assert raw.parse().choices[0].message.content == "One two three"


@pytest.mark.parametrize("stream", [False, True])
def test_past_the_limit_it_raises_its_rate_limit_error(start, upstream, stream):
    gateway = start(resources(upstream.origin, key_limit={"rpd": 1}))
    ask = {"model": "chat", "messages": HELLO, "stream": stream}
    first = sdk(gateway).chat.completions.create(**ask)
    if stream:
        assert list(first)
    with pytest.raises(openai.RateLimitError) as raised:
        sdk(gateway).chat.completions.create(**ask)
    error = raised.value
    assert error.status_code == 429
    assert error.code == "rate_limit_exceeded"
    assert error.type == "rate_limit_exceeded"
    assert error.body["rate_limit"]["quota"] == 1
    headers = error.response.headers
    assert headers["x-ratelimit-limit-requests"] == "1"
    assert headers["x-ratelimit-remaining-requests"] == "0"
    wait_ms = int(headers["retry-after-ms"])
    assert 0 < wait_ms <= 86_400_000
    assert int(headers["retry-after"]) == -(-wait_ms // 1000)
    assert len(upstream.received) == 1


def test_its_own_retries_succeed_after_the_announced_wait(start, upstream):
    window = 3
    gateway = start(resources(upstream.origin, key_limit=[limit("requests", 1, f"{window}s")]))
    room_in_window(window, 2.0)
    sdk(gateway).chat.completions.create(model="chat", messages=HELLO)
    announced = int(gateway.chat().headers["retry-after-ms"]) / 1000
    with Timed() as took:
        answer = sdk(gateway, retries=2).chat.completions.create(model="chat", messages=HELLO)
    assert answer.choices[0].message.content == "One two three"
    assert announced - 0.5 <= took.seconds <= announced + 2
    assert len(upstream.received) == 2
    # Refused: the request that asked for the wait, and the first of the SDK's two.
    assert gateway.metric("stint_decisions_total", policy="all", outcome="refused") == 2


@pytest.mark.parametrize(
    ("ask", "key", "error"),
    [
        ({"model": "chat"}, "sk-unknown", openai.AuthenticationError),
        ({"model": "nothing"}, KEY, openai.NotFoundError),
        ({"model": "chat"}, "sk-narrow", openai.PermissionDeniedError),
        ({"model": "chat", "max_tokens": -1}, KEY, openai.BadRequestError),
    ],
)
def test_its_own_errors(start, upstream, ask, key, error):
    rows = resources(upstream.origin)
    rows["api_keys"].append({"key": "sk-narrow", "allowed_models": ["embed"]})
    gateway = start(rows)
    with pytest.raises(error):
        sdk(gateway, key).chat.completions.create(messages=HELLO, **ask)
    assert upstream.received == []


def test_a_broken_stream_raises(gateway, upstream):
    upstream.once(*streamed(event(stream_chunk("One")), RESET))
    stream = sdk(gateway).chat.completions.create(model="chat", messages=HELLO, stream=True)
    with pytest.raises(openai.APIError) as raised:
        list(stream)
    assert raised.value.code == "upstream_failed"


def test_two_windows_at_once_are_both_told(start, upstream):
    upstream.always(openai_upstream(input_tokens=30, output_tokens=70))
    gateway = start(resources(upstream.origin, key_limit={"rpd": 1000, "tpd": 100}))
    sdk(gateway).chat.completions.create(model="chat", messages=HELLO)
    with pytest.raises(openai.RateLimitError) as raised:
        sdk(gateway).chat.completions.create(model="chat", messages=HELLO)
    assert raised.value.code == "token_limit_exceeded"
    headers = raised.value.response.headers
    assert headers["x-ratelimit-limit-tokens"] == "100"
    assert headers["x-ratelimit-remaining-tokens"] == "0"
