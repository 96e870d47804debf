"""What a request is answered with before any limit: order of errors, ids, the list of models."""

import pytest

from support.gateway import KEY, chat_body, model, resources


def test_probes_need_no_key(gateway):
    assert gateway.request("GET", "/livez").status == 200
    ready = gateway.request("GET", "/readyz")
    assert ready.status == 200
    assert ready.json()["status"] == "ready"


@pytest.mark.parametrize("headers", [{"Authorization": f"Bearer {KEY}"}, {"x-api-key": KEY}])
def test_key_in_either_field(gateway, headers):
    answer = gateway.request("POST", "/v1/chat/completions", body=chat_body(), headers=headers)
    assert answer.status == 200


@pytest.fixture
def picky(start, upstream):
    keys = [
        {"display_name": "narrow", "key": "sk-narrow", "allowed_models": ["chat"]},
        {"display_name": "globs", "key": "sk-globs", "allowed_models": ["em*"]},
        {"display_name": "none", "key": "sk-none"},
        {"display_name": "off", "key": "sk-off", "allowed_models": ["*"], "disabled": True},
        {
            "display_name": "old",
            "key": "sk-old",
            "allowed_models": ["*"],
            "expires_at": "2020-01-01T00:00:00Z",
        },
    ]
    rows = resources(upstream.origin, keys=keys)
    rows["models"].append(model("wild/*", model_name="*"))
    return start(rows)


class TestOrder:
    """401 before 400 before 404 before 403."""

    @pytest.mark.parametrize("key", [None, "sk-unknown", "sk-off", "sk-old", ""])
    def test_no_valid_key_is_401_whatever_the_body(self, picky, upstream, key):
        answer = picky.post("/v1/chat/completions", b"not json", key=key)
        assert answer.status == 401
        assert answer.error()["code"] == ("invalid_api_key" if key else "missing_api_key")
        assert "www-authenticate" in answer.headers
        assert upstream.received == []

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"not json",
            b"[]",
            b'{"model": "chat"',
            b'{"messages": []}',
            b'{"model": 7}',
            b'{"model": "chat", "model": "embed"}',
            b'\xff\xfe{"model": "chat"}',
            b'{"model": "chat", "stream": "yes"}',
            b"[" * 100_000,
        ],
        ids=lambda body: repr(body[:24]),
    )
    def test_bad_body_is_400(self, picky, upstream, body):
        answer = picky.post("/v1/chat/completions", body, key="sk-narrow")
        assert answer.status == 400
        assert answer.error()["type"] == "invalid_request_error"
        assert upstream.received == []

    def test_unknown_model_is_404_before_403(self, picky, upstream):
        answer = picky.chat(model="no-such-model", key="sk-none")
        assert answer.status == 404
        assert answer.error()["code"] == "model_not_found"
        assert "no-such-model" in answer.error()["message"]
        assert upstream.received == []

    @pytest.mark.parametrize(
        ("key", "name"), [("sk-narrow", "embed"), ("sk-globs", "chat"), ("sk-none", "chat")]
    )
    def test_model_that_the_key_may_not_use_is_403(self, picky, upstream, key, name):
        answer = picky.chat(model=name, key=key)
        assert answer.status == 403
        assert answer.error()["code"] == "model_not_allowed"
        assert upstream.received == []

    def test_unknown_path_is_404_and_wrong_method_405(self, picky):
        assert picky.request("GET", "/nothing/here").status == 404
        answer = picky.request("GET", "/v1/chat/completions", key="sk-narrow")
        assert answer.status == 405
        assert answer.headers["allow"] == "POST"


class TestModelList:
    @pytest.mark.parametrize(
        ("key", "names"), [("sk-narrow", ["chat"]), ("sk-globs", ["embed"]), ("sk-none", [])]
    )
    def test_holds_only_what_the_key_may_use(self, picky, upstream, key, names):
        answer = picky.request("GET", "/v1/models", key=key)
        assert answer.status == 200
        assert [row["id"] for row in answer.json()["data"]] == names
        assert upstream.received == []

    def test_needs_a_key(self, picky):
        assert picky.request("GET", "/v1/models").status == 401

    def test_costs_nothing(self, start, upstream):
        gateway = start(resources(upstream.origin, key_limit={"rpd": 1}))
        for _ in range(5):
            assert gateway.request("GET", "/v1/models", key=KEY).status == 200
        assert gateway.chat().status == 200


class TestForwarded:
    def test_body_but_for_the_model_and_our_key_for_theirs(self, gateway, upstream):
        body = chat_body("grüße 🦊", temperature=0.25, metadata={"a": [1, None]})
        assert gateway.post("/v1/chat/completions?x=1", body).status == 200
        sent = upstream.last
        assert sent.method == "POST"
        assert sent.target == "/v1/chat/completions?x=1"
        assert sent.json() == {**body, "model": "mock-chat"}
        assert sent.headers["authorization"] == "Bearer upstream-secret"
        assert KEY not in str(sent.headers.lines)

    def test_no_key_where_the_provider_has_none(self, start, upstream):
        rows = resources(upstream.origin)
        del rows["provider_keys"][0]["secret"]
        gateway = start(rows)
        assert gateway.chat().status == 200
        assert "authorization" not in upstream.last.headers

    def test_wildcard_model_keeps_what_the_star_stood_for(self, start, upstream):
        rows = resources(upstream.origin)
        rows["models"].append(model("wild/*", model_name="vendor-*"))
        gateway = start(rows)
        assert gateway.chat(model="wild/large").status == 200
        assert upstream.last.json()["model"] == "vendor-large"

    def test_connection_is_kept(self, gateway, upstream):
        with gateway.connect() as connection:
            for _ in range(3):
                connection.ask("POST", "/v1/chat/completions", body=chat_body(), key=KEY)
                assert connection.answer().read().status == 200
        assert len({received.connection for received in upstream.received}) == 1

    def test_pipelined_requests_are_answered_in_order(self, gateway):
        with gateway.connect() as connection:
            for text in ("/livez", "/readyz", "/nothing"):
                connection.ask("GET", text)
            assert [connection.answer().read().status for _ in range(3)] == [200, 200, 404]


class TestRequestId:
    def test_is_echoed_and_passed_on(self, gateway, upstream):
        answer = gateway.post(
            "/v1/chat/completions", chat_body(), headers={"X-Request-Id": "my-id.1"}
        )
        assert answer.headers["x-request-id"] == "my-id.1"
        assert upstream.last.headers["x-request-id"] == "my-id.1"

    def test_is_made_where_there_is_none(self, gateway, upstream):
        ids = {gateway.chat().headers["x-request-id"] for _ in range(3)}
        assert len(ids) == 3
        assert ids == {received.headers["x-request-id"] for received in upstream.received}

    @pytest.mark.parametrize("bad", ["", "x" * 200, "with space"])
    def test_is_replaced_where_it_cannot_be_used(self, gateway, bad):
        answer = gateway.request("GET", "/livez", headers={"X-Request-Id": bad})
        assert answer.headers["x-request-id"] not in ("", bad)

    @pytest.mark.parametrize("path", ["/livez", "/nothing", "/v1/models"])
    def test_is_on_every_answer(self, gateway, path):
        assert "x-request-id" in gateway.request("GET", path).headers
