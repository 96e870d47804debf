"""Plain HTTP routes: a payments API, limited by client, method and key."""

import pytest

from support.gateway import KEY, limit, resources
from support.openai_shapes import whole

TRUSTED = {"proxy": {"real_ip": {"trusted_proxies": ["127.0.0.1"]}}}


def route(name, origin, match, **more):
    return {"name": name, "match": match, "upstream": origin, **more}


def from_client(address):
    return {"X-Forwarded-For": address}


@pytest.fixture
def payments(start, upstream):
    upstream.always(whole(b'{"done":true}'))
    routes = [
        route(
            "pay",
            upstream.origin,
            {"path_prefix": "/payments", "methods": ["POST"]},
            rate_limit=[limit("requests", 10, "60s", "sliding_window")],
        ),
        route(
            "look",
            upstream.origin,
            {"path_prefix": "/payments", "methods": ["GET"]},
            rate_limit=[limit("requests", algorithm="token_bucket", capacity=100, refill_rate=50)],
        ),
    ]
    return start(resources(upstream.origin, routes=routes), TRUSTED)


def pay(gateway, client):
    return gateway.request("POST", "/payments", body=b"{}", headers=from_client(client))


class TestPayments:
    def test_eleventh_post_is_refused_and_others_are_untouched(self, payments, upstream):
        assert [pay(payments, "203.0.113.1").status for _ in range(11)] == [200] * 10 + [429]
        assert [pay(payments, "203.0.113.2").status for _ in range(10)] == [200] * 10
        for _ in range(50):
            answer = payments.request("GET", "/payments/1", headers=from_client("203.0.113.1"))
            assert answer.status == 200
        assert len(upstream.received) == 70

    def test_headers(self, payments):
        answer = pay(payments, "203.0.113.3")
        assert answer.headers["x-ratelimit-limit"] == "10"
        assert answer.headers["x-ratelimit-remaining"] == "9"
        assert 1 <= int(answer.headers["x-ratelimit-reset"]) <= 120
        assert "ratelimit-policy" in answer.headers
        assert not any(name.startswith("x-ratelimit-limit-") for name in answer.headers.names())

    def test_refusal(self, payments):
        for _ in range(10):
            pay(payments, "203.0.113.4")
        refused = pay(payments, "203.0.113.4")
        assert refused.status == 429
        assert refused.headers["x-ratelimit-remaining"] == "0"
        wait_ms = int(refused.headers["retry-after-ms"])
        assert 0 < wait_ms <= 60_000 * 2
        assert int(refused.headers["retry-after"]) == -(-wait_ms // 1000)
        assert refused.error()["code"] == "rate_limit_exceeded"
        assert refused.error()["policy"]["name"] == "routes/pay"
        assert refused.error()["rate_limit"]["quota"] == 10

    def test_generous_gets_have_their_burst_and_no_more(self, payments):
        found = set()
        with payments.connect() as connection:
            for _ in range(400):
                connection.ask("GET", "/payments/1", headers=from_client("203.0.113.5"))
                answer = connection.answer().read()
                found.add(answer.status)
                if answer.status == 429:
                    break
        assert found == {200, 429}
        # 50 a second: the next one is a matter of milliseconds.
        assert int(answer.headers["retry-after-ms"]) <= 20

    def test_other_method_is_405_and_names_those_that_are_allowed(self, payments, upstream):
        answer = payments.request("DELETE", "/payments/1")
        assert answer.status == 405
        allowed = {method.strip() for method in answer.headers["allow"].split(",")}
        assert allowed >= {"GET", "POST"}
        assert upstream.received == []


class TestForwarding:
    @pytest.fixture
    def files(self, start, upstream):
        routes = [
            route("files", upstream.origin, {"path_prefix": "/files"}, strip_prefix="/files"),
            route("other", upstream.origin + "/base", {"path_prefix": "/other"}),
        ]
        return start(resources(upstream.origin, routes=routes))

    def test_method_path_query_and_body(self, files, upstream):
        body = bytes(range(256)) * 64
        answer = files.request("PUT", "/files/a%20b/../c?q=1&r=%2F", body=body)
        assert answer.status == 200
        sent = upstream.last
        assert (sent.method, sent.target, sent.body) == ("PUT", "/c?q=1&r=%2F", body)

    def test_base_path_of_the_upstream_stays(self, files, upstream):
        files.request("GET", "/other/x")
        assert upstream.last.target == "/base/other/x"

    def test_chunked_body(self, files, upstream):
        body = b"5\r\nhello\r\n7;ext=1\r\n, world\r\n0\r\nX-Trailer: 1\r\n\r\n"
        answer = files.request(
            "POST", "/files/x", body=body, headers={"Transfer-Encoding": "chunked"}
        )
        assert answer.status == 200
        assert upstream.last.body == b"hello, world"

    def test_what_concerns_one_connection_stays_behind(self, files, upstream):
        headers = {
            "Connection": "keep-alive, X-Private",
            "X-Private": "1",
            "Keep-Alive": "timeout=5",
            "TE": "trailers",
            "Upgrade": "websocket",
            "Proxy-Authorization": "x",
            "X-Public": "1",
        }
        files.request("GET", "/files/x", headers=headers)
        assert upstream.last.headers["x-public"] == "1"
        names = upstream.last.headers.names()
        assert not names & {"x-private", "keep-alive", "te", "upgrade", "proxy-authorization"}

    def test_large_answer_is_identical(self, files, upstream):
        body = bytes(i * 7 % 251 for i in range(3_000_000))
        upstream.once(whole(body, content_type="application/octet-stream", fields=[("ETag", "x")]))
        answer = files.request("GET", "/files/big")
        assert answer.body == body
        assert answer.headers["etag"] == "x"
        assert answer.headers["content-length"] == str(len(body))


class TestKeys:
    @pytest.fixture
    def guarded(self, start, upstream):
        routes = [
            route(
                "guarded",
                upstream.origin,
                {"path": "/guarded"},
                auth="api_key",
                rate_limit={"rpd": 2},
            )
        ]
        rows = resources(upstream.origin, routes=routes)
        rows["api_keys"].append({"key": "sk-second", "allowed_models": []})
        return start(rows)

    def test_key_is_needed(self, guarded, upstream):
        assert guarded.request("GET", "/guarded").status == 401
        assert guarded.request("GET", "/guarded", key="sk-wrong").status == 401
        assert upstream.received == []

    def test_each_key_counts_by_itself(self, guarded):
        for key in (KEY, "sk-second"):
            found = [guarded.request("GET", "/guarded", key=key).status for _ in range(3)]
            assert found == [200, 200, 429]

    def test_key_of_the_gateway_does_not_reach_the_upstream(self, guarded, upstream):
        assert guarded.request("GET", "/guarded", key=KEY).status == 200
        received = upstream.received[-1]
        assert "authorization" not in received.headers
        assert "x-api-key" not in received.headers

    def test_wrong_keys_use_up_nothing(self, guarded):
        for _ in range(5):
            guarded.request("GET", "/guarded", key="sk-wrong")
        assert guarded.request("GET", "/guarded", key=KEY).headers["x-ratelimit-remaining"] == "1"


def test_limit_for_all_clients_together(start, upstream):
    routes = [
        route("shared", upstream.origin, {"path": "/shared"}, group_by=[], rate_limit={"rpd": 3})
    ]
    gateway = start(resources(upstream.origin, routes=routes), TRUSTED)
    found = [
        gateway.request("GET", "/shared", headers=from_client(f"203.0.113.{n}")).status
        for n in range(5)
    ]
    assert found == [200, 200, 200, 429, 429]


def test_policy_by_path(start, upstream):
    policies = [
        {
            "name": "searches",
            "conditions": [{"dimension": "path", "operator": "==", "value": "/api/search"}],
            "group_by": ["client_ip"],
            "limits": {"rpd": 1},
        }
    ]
    routes = [route("api", upstream.origin, {"path_prefix": "/api"})]
    gateway = start(resources(upstream.origin, routes=routes, rate_limit_policies=policies))
    # However the path is spelt, it is one path.
    spellings = ["/api/search", "/api/./search", "/api/x/../search", "/api/%73earch"]
    assert [gateway.request("GET", path).status for path in spellings] == [200, 429, 429, 429]
    assert gateway.request("GET", "/api/other").status == 200


class TestHosts:
    """One host, however it is written: what is matched is what is counted and passed on."""

    @pytest.fixture
    def hosted(self, start, upstream):
        routes = [
            route("api", upstream.origin, {"host": "api.test"}, rate_limit={"rpd": 1}),
            route("rest", upstream.origin, {"path_prefix": "/"}),
        ]
        return start(resources(upstream.origin, routes=routes))

    def ask(self, gateway, target, host, method="GET"):
        return gateway.request(method, target, headers={"Host": host})

    def test_no_spelling_dodges_the_limit(self, hosted, upstream):
        assert self.ask(hosted, "/x", "api.test").status == 200
        for target, host in [
            ("/x", "API.test"),
            ("/x", "api.test."),
            ("/x", "api.test:80"),
            ("/x", "api.test.:8080"),
            ("http://api.test/x", "other.test"),
            ("http://api.test./x", "other.test"),
            ("HTTPS://API.TEST:443/x", "other.test"),
        ]:
            assert self.ask(hosted, target, host).status == 429, (target, host)
        assert len(upstream.received) == 1

    def test_the_upstream_is_told_the_host_that_was_matched(self, hosted, upstream):
        answer = self.ask(hosted, "http://Other.test:8080/x", "api.test")
        assert answer.status == 200
        assert "x-ratelimit-limit" not in answer.headers
        assert upstream.last.headers["x-forwarded-host"] == "other.test:8080"

    @pytest.mark.parametrize("host", ["api%2Etest", "ap%69.test", "api..test", "[::g]", "a b"])
    def test_what_is_no_host_is_400(self, hosted, upstream, host):
        assert self.ask(hosted, "/x", host).status == 400
        assert upstream.received == []

    def test_what_is_for_the_server_as_a_whole_is_no_route(self, hosted, upstream):
        assert self.ask(hosted, "*", "api.test", "OPTIONS").status == 404
        assert upstream.received == []

    @pytest.mark.parametrize("target", ["/x", "api.test:443", "http://api.test/"])
    def test_there_are_no_tunnels(self, hosted, upstream, target):
        assert self.ask(hosted, target, "api.test", "CONNECT").status == 501
        assert upstream.received == []


def test_basic_credentials_beside_a_key_are_the_upstreams(start, upstream):
    routes = [route("guarded", upstream.origin, {"path": "/guarded"}, auth="api_key")]
    gateway = start(resources(upstream.origin, routes=routes))
    headers = {"Authorization": "Basic dTpw", "x-api-key": KEY}
    assert gateway.request("GET", "/guarded", headers=headers).status == 200
    assert upstream.last.headers["authorization"] == "Basic dTpw"
    assert "x-api-key" not in upstream.last.headers
