"""The admin API: what it shows of a running gateway, what it resets, and whom it answers."""

import json
import re
import signal
from datetime import datetime, timezone

import pytest

from support import client
from support.admin import Admin
from support.gateway import ROOT, as_yaml, free_port, limit, resources, run_stint
from support.openai_shapes import event, stream_chunk, streamed
from support.poll import until
from support.upstream import Gate

DAY = "1d"
JSON = {"Content-Type": "application/json"}


def route(name="pay", **more):
    return {"name": name, "match": {"path_prefix": f"/{name}"}, **more}


def keys_with_limit(count, **limits):
    return [
        {"id": f"k{i}", "key": f"sk-{i}", "allowed_models": ["*"], "rate_limit": limits}
        for i in range(count)
    ]


@pytest.fixture(params=["memory", "redis"])
def operated(request, start, upstream):
    """operated(rows, *keys) gives (gateway, admin), with counters in either store."""

    def start_one(rows, *keys, **settings):
        if request.param == "redis":
            redis = request.getfixturevalue("redis")
            server = {"url": redis.url, "timeout_ms": 2000}
            settings["ratelimit"] = {"backend": "redis", "redis": server}
        admin = Admin(*keys, **settings)
        gateway = start(rows, admin.settings)
        until(lambda: not gateway.degraded(), "it counts")
        return gateway, admin

    start_one.store = request.param
    return start_one


class TestBuckets:
    def test_are_listed_with_what_is_used(self, operated, upstream):
        limits = [
            limit("requests", 10, DAY),
            limit("tokens", 100, "1h", "sliding_window"),
            limit("requests", burst=20, quota=60, per="1m", algorithm="token_bucket"),
            limit("requests", 5, DAY, "sliding_log"),
            limit("concurrency", 3),
        ]
        policy = {"id": "team", "name": "by team", "group_by": ["team"], "limits": limits}
        rows = resources(upstream.origin, rate_limit_policies=[policy])
        rows["api_keys"][0]["team_id"] = "red:1"
        gateway, admin = operated(rows)
        for _ in range(2):
            assert gateway.chat().status == 200  # 3 input and 5 output tokens each
        (bucket,) = admin.buckets("team:*")
        assert bucket["key"] == "team:team=red%3A1"
        assert bucket["policy"] == {"id": "team", "name": "by team"}
        shown = {(one["unit"], one["algorithm"]): one for one in bucket["limits"]}
        assert len(shown) == 5
        day = shown["requests", "fixed_window"]
        assert (day["quota"], day["window_secs"]) == (10, 86400)
        assert (day["used"], day["remaining"]) == (2, 8)
        assert 0 < day["reset_ms"] <= 86_400_000
        tokens = shown["tokens", "sliding_window"]
        assert (tokens["used"], tokens["remaining"]) == (16, 84)
        tokens = shown["requests", "token_bucket"]
        assert (tokens["quota"], tokens["burst"]) == (60, 20)
        assert tokens["remaining"] in (18, 19, 20)
        assert tokens["used"] + tokens["remaining"] == 20
        log = shown["requests", "sliding_log"]
        assert (log["used"], log["remaining"]) == (2, 3)
        assert 86_000_000 < log["reset_ms"] <= 86_400_000
        slots = shown["concurrency", "concurrency"]
        assert (slots["used"], slots["remaining"], slots["window_secs"]) == (0, 3, None)

    def test_running_requests_are_seen(self, operated, upstream):
        rows = resources(upstream.origin, key_limit={"concurrency": 2, "rpd": 9})
        gateway, admin = operated(rows)
        gate, last = Gate(), event("[DONE]")
        upstream.once(*streamed(event(stream_chunk("One")), gate, last))
        stream = gateway.start_stream()
        stream.read_until(b"One")

        def slots():
            (bucket,) = admin.buckets()
            (slots,) = [one for one in bucket["limits"] if one["unit"] == "concurrency"]
            return slots["used"], slots["remaining"]

        assert slots() == (1, 1)
        gate.open()
        stream.read()
        assert slots() == (0, 2)

    def test_are_paged_and_found_by_pattern(self, operated, upstream):
        rows = resources(upstream.origin, keys=keys_with_limit(30, rpd=5))
        gateway, admin = operated(rows)
        for i in range(30):
            assert gateway.chat(key=f"sk-{i}").status == 200
        everything = {f"api_keys/k{i}" for i in range(30)}
        for size in (1, 7, 100):
            listed = [bucket["key"] for bucket in admin.buckets(limit=size)]
            assert sorted(listed) == sorted(everything)
        assert len(admin.buckets("api_keys/k1?")) == 10
        assert admin.buckets("nothing*") == []

    def test_are_reset(self, operated, upstream):
        rows = resources(upstream.origin, keys=keys_with_limit(3, rpd=1))
        gateway, admin = operated(rows)
        for i in range(3):
            assert [gateway.chat(key=f"sk-{i}").status for _ in range(2)] == [200, 429]
        assert admin.reset("api_keys/k0") == 1
        assert [gateway.chat(key=f"sk-{i}").status for i in range(3)] == [200, 429, 429]
        deleted = admin.ask("DELETE", "/buckets?pattern=api_keys%2Fk1").json()
        assert deleted == {"removed": 1, "next": None, "complete": True, "unreached": []}
        assert [gateway.chat(key=f"sk-{i}").status for i in range(3)] == [429, 200, 429]
        assert admin.reset("*") == 3
        assert admin.buckets() == []
        gateway.wait_log("buckets were reset through the admin API", "pattern=api_keys/k0")

    def test_are_not_reset_by_mistake(self, operated, upstream):
        gateway, admin = operated(resources(upstream.origin, key_limit={"rpd": 1}))
        assert gateway.chat().status == 200
        for method, path, body in (
            ("DELETE", "/buckets", None),
            ("DELETE", "/buckets?pattern=", None),
            ("DELETE", "/buckets?patern=*", None),
            ("POST", "/reset", {}),
            ("POST", "/reset", {"pattern": 1}),
            ("POST", "/reset", b"{"),
        ):
            answer = admin.ask(method, path, body=body, headers=JSON)
            assert answer.status == 400, (method, path, body)
            assert answer.json()["error"]["code"] == "invalid_argument"
        assert admin.ask("POST", "/reset", body=b"x" * 100_000, headers=JSON).status == 413
        assert len(admin.buckets()) == 1


class TestPlaces:
    def test_memory_is_one_place(self, start, upstream):
        admin = Admin()
        start(resources(upstream.origin), admin.settings)
        ring = admin.get("/ring")
        assert (ring["backend"], ring["mode"]) == ("memory", "memory")
        assert [shard["share"] for shard in ring["shards"]] == [1]
        assert admin.get("/shards")["degraded"] is False
        assert admin.get("/location", key="p:x=1")["shard"] == ring["shards"][0]["name"]

    def test_one_redis_is_one_shard(self, start, upstream, redis):
        server = {"url": redis.url.replace("//", "//:ignored@") + "/0", "timeout_ms": 2000}
        redis.ask("CONFIG", "SET", "requirepass", "ignored")
        admin = Admin(ratelimit={"backend": "redis", "redis": server})
        gateway = start(resources(upstream.origin, key_limit={"rpd": 5}), admin.settings)
        until(lambda: not gateway.degraded(), "it counts in Redis")
        name = f"127.0.0.1:{redis.port}/0"
        ring = admin.get("/ring")
        assert (ring["backend"], ring["mode"], ring["virtual_nodes"]) == ("redis", "single", None)
        (shard,) = ring["shards"]
        assert (shard["name"], shard["address"], shard["share"]) == (name, name, 1)
        assert admin.get("/location", key="p:x=1") == {
            "key": "p:x=1",
            "shard": name,
            "address": name,
        }
        assert admin.get("/shards") == {
            "degraded": False,
            "shards": [{"name": name, "degraded": False, "why": None, "since": None}],
        }
        assert gateway.chat().status == 200
        assert [bucket["shard"] for bucket in admin.buckets()] == [name]
        assert "ignored" not in json.dumps(admin.get("/config"))
        redis.ask("CONFIG", "SET", "requirepass", "")

    @pytest.mark.parametrize("redis", ["sentinel", "cluster"], indirect=True)
    def test_servers_that_were_found(self, start, upstream, redis):
        server = {**redis.settings, "timeout_ms": 2000}
        admin = Admin(ratelimit={"backend": "redis", "redis": server})
        gateway = start(resources(upstream.origin, key_limit={"rpd": 5}), admin.settings)
        until(lambda: not gateway.degraded(), "it counts in Redis")
        ring = admin.get("/ring")
        names = [shard["name"] for shard in ring["shards"]]
        if ring["mode"] == "sentinel":
            assert names == ["mymaster"]
            assert ring["shards"][0]["address"] is None
            owner = "mymaster"
        else:
            assert sorted(names) == sorted(f"127.0.0.1:{node.port}/0" for node in redis.masters)
            owner = f"127.0.0.1:{redis.owner('api_keys/test').port}/0"
        assert admin.get("/location", key="api_keys/test")["shard"] == owner
        assert gateway.chat().status == 200
        assert [bucket["shard"] for bucket in admin.buckets()] == [owner]
        reset = admin.ask("POST", "/reset", body={"pattern": "*"}).json()
        assert reset["complete"] is True
        assert admin.buckets() == []

    @pytest.mark.parametrize("how", ["kill", "stop"])
    def test_a_redis_that_is_away_is_told(self, start, upstream, redis, how):
        server = {"url": redis.url, "timeout_ms": 200}
        admin = Admin(ratelimit={"backend": "redis", "redis": server})
        gateway = start(resources(upstream.origin, key_limit={"rpd": 50}), admin.settings)
        until(lambda: not gateway.degraded(), "it counts in Redis")
        assert gateway.chat().status == 200
        assert len(admin.buckets()) == 1
        begun = datetime.now(timezone.utc)

        def look():
            name = f"127.0.0.1:{redis.port}/0"
            page = admin.get("/buckets")
            assert (page["buckets"], page["next"], page["complete"]) == ([], None, False)
            assert [place["shard"] for place in page["unreached"]] == [name]
            assert page["unreached"][0]["why"]
            reset = admin.ask("POST", "/reset", body={"pattern": "*"}).json()
            assert (reset["removed"], reset["complete"]) == (0, False)
            assert [place["shard"] for place in reset["unreached"]] == [name]

            def degraded():
                gateway.chat()  # so that it is noticed
                return admin.get("/shards")["degraded"]

            until(degraded, "the shard is degraded")
            (shard,) = admin.get("/shards")["shards"]
            assert shard["name"] == name and shard["why"]
            since = datetime.fromisoformat(shard["since"].replace("Z", "+00:00"))
            assert abs((since - begun).total_seconds()) < 30

        if how == "kill":
            redis.kill()
            look()
            redis.start()
        else:
            with redis.paused():
                look()
        until(lambda: not admin.get("/shards")["degraded"], "it is back", 10)
        until(lambda: admin.get("/buckets")["complete"], "it lists again", 10)


class TestConfiguration:
    def test_is_shown_without_secrets(self, operated, upstream):
        rows = resources(upstream.origin, routes=[route(upstream=upstream.origin)])
        rows["api_keys"][0]["rate_limit"] = {"rpm": 7}
        gateway, admin = operated(rows, "an-admin-key", "another-admin-key")
        config = admin.get("/config")
        settings = {one["key"]: one for one in config["settings"]}
        assert settings["proxy.addr"]["value"] == f"127.0.0.1:{gateway.port}"
        assert re.search(r"stint\.yaml:\d+:\d+$", settings["proxy.addr"]["source"])
        assert settings["upstream.timeout_ms"]["source"] == "default"
        assert settings["admin.admin_keys"]["value"] == "***"
        assert settings["ratelimit.backend"]["value"] == operated.store
        assert [row["name"] for row in config["resources"]["routes"]] == ["pay"]
        text = json.dumps([config, admin.get("/policies"), admin.get("/config/errors")])
        for secret in ("an-admin-key", "another-admin-key", "upstream-secret", "sk-test"):
            assert secret not in text
        policies = {one["id"]: one for one in admin.get("/policies")["policies"]}
        assert policies["api_keys/test"]["limits"] == [
            {"unit": "requests", "algorithm": "fixed_window", "quota": 7, "window_secs": 60}
        ]

    def test_errors_of_the_resources_are_shown(self, start, upstream):
        admin = Admin()
        rows = resources(upstream.origin)
        gateway = start(rows, admin.settings)
        assert admin.get("/config/errors")["resources"]["in_force"] is True
        gateway.write_resources(as_yaml(rows).replace('"model_name"', '"modl_name"', 1))

        def refused():
            return admin.get("/config/errors")["resources"]["faults"]

        (fault, *_) = until(refused, "the fault is shown")
        assert "modl_name" in fault["key"] and fault["line"] > 0 and fault["message"]
        told = admin.get("/config/errors")["resources"]
        assert (told["in_force"], told["generation"]) == (False, 1)
        rows["models"].append({**rows["models"][0], "display_name": "more"})
        gateway.write_resources(rows)
        until(lambda: not refused(), "the fault is mended")
        until(lambda: admin.get("/policies")["generation"] == 2, "it is in force")
        names = [row["display_name"] for row in admin.get("/config")["resources"]["models"]]
        assert "more" in names

    def test_errors_of_the_bootstrap_are_shown(self, start, upstream):
        admin = Admin()
        gateway = start(resources(upstream.origin), admin.settings)
        good = gateway.bootstrap_file.read_text()

        def reread(text):
            gateway.bootstrap_file.write_text(text)
            gateway.signal(signal.SIGHUP)

        def bootstrap():
            return admin.get("/config/errors")["bootstrap"]

        reread(good.replace('"proxy"', '"prxy"'))
        (fault, *_) = until(lambda: bootstrap()["faults"], "the fault is shown")
        assert fault["key"] == "prxy"
        changed = json.loads(good)
        changed["proxy"]["workers"] = 1
        changed["observability"]["log_level"] = "debug"
        reread(as_yaml(changed))
        assert until(lambda: bootstrap()["needs_restart"], "told") == ["proxy.workers"]
        assert bootstrap()["faults"] == []
        settings = {one["key"]: one["value"] for one in admin.get("/config")["settings"]}
        assert settings["proxy.workers"] == "2"
        assert settings["observability.log_level"] == "debug"  # taken over


class TestGuard:
    def test_keys(self, operated, upstream):
        _, admin = operated(resources(upstream.origin), "an-admin-key", "another")
        assert admin.ask("GET", "/ring").status == 200
        assert admin.ask("GET", "/ring", key="another").status == 200
        for key in (None, "an-admin-ke", "sk-test", ""):
            refused = admin.ask("GET", "/ring", key=key)
            assert refused.status == 401
            assert refused.headers["www-authenticate"] == "Bearer"
            assert admin.ask("GET", "/nothing-here", key=key).status == 401
        # With keys the name does not matter: a tunnel or a proxy may be in between.
        assert admin.ask("GET", "/ring", headers={"Host": "stint.internal"}).status == 200

    def test_pages_of_others_get_nothing(self, start, upstream):
        admin = Admin()
        start(resources(upstream.origin), admin.settings)
        mine = f"127.0.0.1:{admin.port}"
        for headers in (
            {"Host": "evil.example"},
            {"Host": f"evil.example:{admin.port}"},
            {"Host": "127.0.0.1.evil.example"},
            {"Host": mine, "Origin": "http://evil.example"},
            {"Host": mine, "Origin": "null"},
            {"Host": mine, "Sec-Fetch-Site": "cross-site"},
        ):
            assert admin.ask("GET", "/ring", headers=headers).status == 403, headers
            assert admin.ask("DELETE", "/buckets?pattern=*", headers=headers).status == 403
        assert admin.ask("GET", "/ring", headers={"Host": f"localhost:{admin.port}"}).status == 200
        assert admin.ask("GET", "/ring", headers={"Origin": f"http://{mine}"}).status == 200
        # What a form of somebody else can send.
        plain = {"Content-Type": "text/plain"}
        refused = admin.ask("POST", "/reset", body=b'{"pattern":"*"}', headers=plain)
        assert refused.status == 415

    def test_keys_are_needed_off_loopback(self, tmp_path, upstream):
        (tmp_path / "resources.yaml").write_text(as_yaml(resources(upstream.origin)))
        file = tmp_path / "stint.yaml"
        admin = {"enabled": True, "addr": f"0.0.0.0:{free_port()}"}
        settings = {
            "proxy": {"addr": f"127.0.0.1:{free_port()}"},
            "admin": admin,
            "resources_file": "resources.yaml",
        }
        for wrong, word in (
            ({}, "admin.admin_keys: is missing: addr '0.0.0.0:"),
            ({"admin_keys": [""]}, "admin.admin_keys: must be keys of visible ASCII"),
            ({"tls": {"cert_file": "c", "key_file": "k"}}, "admin.tls: not available yet"),
        ):
            settings["admin"] = {**admin, **wrong}
            file.write_text(as_yaml(settings))
            for arguments in (["check", file], ["--config", file]):
                refused = run_stint(*arguments)
                assert refused.returncode == 1
                assert word in refused.stderr

    def test_off_loopback_with_a_key(self, start, upstream):
        admin = Admin("an-admin-key", addr="0.0.0.0")
        start(resources(upstream.origin), admin.settings)
        assert admin.get("/ring")["mode"] == "memory"
        assert admin.ask("GET", "/ring", key=None).status == 401

    def test_it_is_off_unless_it_is_switched_on(self, start, upstream):
        port = free_port()
        gateway = start(resources(upstream.origin), {"admin": {"addr": f"127.0.0.1:{port}"}})
        assert "admin" not in gateway.log()
        with pytest.raises(ConnectionRefusedError), client.Connection(port):
            pass

    def test_a_taken_port_ends_the_program(self, tmp_path, upstream, start):
        gateway = start(resources(upstream.origin))
        (tmp_path / "resources.yaml").write_text(as_yaml(resources(upstream.origin)))
        file = tmp_path / "stint.yaml"
        file.write_text(
            as_yaml(
                {
                    "proxy": {"addr": f"127.0.0.1:{free_port()}"},
                    "admin": {"enabled": True, "addr": f"127.0.0.1:{gateway.metrics_port}"},
                    "resources_file": "resources.yaml",
                }
            )
        )
        refused = run_stint("--config", file)
        assert refused.returncode == 1
        assert "address already in use" in refused.stderr


def test_unknown_paths_and_methods(start, upstream):
    admin = Admin()
    start(resources(upstream.origin), admin.settings)
    index = {row["path"]: row["methods"] for row in admin.get("")["endpoints"]}
    assert index["/admin/v1/buckets"] == "GET, HEAD, DELETE"
    assert admin.ask("GET", "/nothing").status == 404
    wrong = admin.ask("POST", "/ring")
    assert (wrong.status, wrong.headers["allow"]) == (405, "GET, HEAD")
    assert admin.ask("HEAD", "/ring").status == 200
    page = (ROOT / "docs/admin-api.md").read_text()
    documented = set(re.findall(r"`(?:GET|POST|DELETE) (/admin/v1[^`?]*)", page))
    assert documented == set(index)


def test_it_answers_to_the_end(start, upstream):
    """While the data plane drains, and then it goes with the rest."""
    settings = {"shutdown": {"min_drain_secs": 2, "max_drain_secs": 5}}
    admin = Admin(**settings)
    gateway = start(resources(upstream.origin), admin.settings)
    gateway.signal(signal.SIGTERM)
    until(lambda: gateway.readyz() == 503, "it stops")
    assert admin.get("/ring")["mode"] == "memory"
    assert gateway.wait_exit() == 0
