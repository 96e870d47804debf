"""What an OpenAI-compatible upstream sends, as steps for a MockUpstream."""

import base64
import json
import struct


def head(status=200, fields=(), *, length=None, reason="OK"):
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in fields)]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def whole(body, status=200, content_type="application/json", fields=()):
    """An answer of known length, in one piece."""
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return head(status, [("Content-Type", content_type), *fields], length=len(body)) + body


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"


def usage(input_tokens, output_tokens, **more):
    return {
        "prompt_tokens": input_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
        **more,
    }


def completion(text="Hello!", tokens=None, model="mock-chat"):
    """The body of a chat completion. `tokens`: its usage; None: it has none."""
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "stop",
            }
        ],
    }
    if tokens is not None:
        body["usage"] = tokens
    return body


def stream_chunk(content=None, **more):
    """The object of one event of a streamed chat."""
    choices = []
    if content is not None:
        choices = [{"index": 0, "delta": {"content": content}, "finish_reason": None}]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": "mock-chat",
        "choices": choices,
        **more,
    }


def event(data, end="\n"):
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"data: {text}{end}{end}".encode()


def stream_events(words, tokens, end="\n"):
    """The events of a streamed chat: one for each word, the usage chunk, [DONE]."""
    events = [event(stream_chunk(word), end) for word in words]
    if tokens is not None:
        events.append(event(stream_chunk(usage=tokens), end))
    return [*events, event("[DONE]", end)]


STREAM_HEAD = head(
    200, [("Content-Type", "text/event-stream; charset=utf-8"), ("Transfer-Encoding", "chunked")]
)


def streamed(*steps):
    """A streamed answer: bytes among the steps are sent as chunks, the rest as it is."""
    body = [chunk(step) if isinstance(step, bytes) else step for step in steps]
    return [STREAM_HEAD, *body, LAST_CHUNK]


def openai_upstream(input_tokens=3, output_tokens=5, words=("One", " two", " three")):
    """A reply for every request: chats, streamed ones with usage if asked for, embeddings."""

    def reply(received):
        if received.target.endswith("/embeddings"):
            return [whole(embeddings(received.json(), input_tokens))]
        if not received.target.endswith("/chat/completions"):
            return [whole(b"plain\n", content_type="text/plain")]
        asked = received.json()
        tokens = usage(input_tokens, output_tokens)
        if not asked.get("stream"):
            return [whole(completion("".join(words), tokens, asked["model"]))]
        with_usage = (asked.get("stream_options") or {}).get("include_usage")
        return streamed(*stream_events(words, tokens if with_usage else None))

    return reply


def embeddings(asked, input_tokens):
    inputs = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
    vector = [0.5, -0.25, 0.125]
    value = vector
    if asked.get("encoding_format") == "base64":
        value = base64.b64encode(struct.pack("<3f", *vector)).decode()
    return {
        "object": "list",
        "model": asked["model"],
        "data": [
            {"object": "embedding", "index": i, "embedding": value} for i in range(len(inputs))
        ],
        "usage": {"prompt_tokens": input_tokens, "total_tokens": input_tokens},
    }
