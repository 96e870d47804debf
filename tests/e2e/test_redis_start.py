"""How stint finds Redis: addresses, passwords, certificates; and starts without it."""

import contextlib
import os
import re
import signal
import subprocess

import pytest

from support.certificates import make_certificate
from support.client import request
from support.gateway import BINARY, KEY, as_yaml, chat_body, free_port, resources, run_stint
from support.poll import until
from support.redis import RedisServer

SECRET = "open-sesame-7431"
WRONG = "wrong-sesame-9182"


@pytest.fixture
def rows(upstream):
    return resources(upstream.origin, key_limit={"rpd": 1})


@pytest.fixture
def start_with(start, rows):
    """start_with(url, more of ratelimit.redis) gives a gateway that serves; without Redis, too."""

    def start_one(url, **more):
        server = {"timeout_ms": 2000, **({"url": url} if url else {}), **more}
        return start(rows, {"ratelimit": {"backend": "redis", "redis": server}})

    return start_one


@pytest.fixture
def launch(tmp_path):
    """launch(options) gives a Redis with these options."""
    servers = []

    def launch_one(*options, **more):
        servers.append(RedisServer(tmp_path / f"redis-{len(servers)}", *options, **more))
        return servers[-1]

    yield launch_one
    for server in servers:
        server.stop()


def counts(gateway):
    until(lambda: not gateway.degraded(), "it counts in Redis")
    return gateway


def assert_secret(gateway, *secrets):
    told = gateway.log() + gateway.scrape() + gateway.request("GET", "/readyz").body.decode()
    assert not [secret for secret in secrets if secret in told], told


class TestAway:
    def test_serves_by_the_outage_rule_until_it_comes(self, launch, start_with):
        redis = launch(wait=False)
        one, other = start_with(redis.url), start_with(redis.url)
        for gateway in (one, other):
            assert gateway.degraded()
            assert gateway.metric("stint_store_degraded") == 1
            gateway.wait_log("redis is away: the outage rule decides", "refused")
        assert [one.chat().status for _ in range(2)] == [200, 429]
        redis.start()
        until(lambda: not one.degraded() and not other.degraded(), "both count in Redis", 2)
        # What one admitted before is told.
        until(lambda: redis.used("api_keys/test") == 1, "it is told", 1)
        assert [gateway.chat().status for gateway in (one, other)] == [429, 429]

    @pytest.mark.parametrize("there", [True, False])
    def test_required(self, launch, tmp_path, rows, there):
        redis = launch(password=SECRET, wait=there)
        (tmp_path / "resources.yaml").write_text(as_yaml(rows))
        settings = {
            "proxy": {"addr": f"127.0.0.1:{free_port()}"},
            "resources_file": "resources.yaml",
            "ratelimit": {
                "backend": "redis",
                # There, but not for us; or not there.
                "redis": {"url": redis.url, "password": WRONG, "required": True},
            },
        }
        (tmp_path / "stint.yaml").write_text(as_yaml(settings))
        ended = run_stint("--config", tmp_path / "stint.yaml")
        told = ended.stdout + ended.stderr
        assert ended.returncode > 0
        assert f"127.0.0.1:{redis.port}" in told
        assert ("WRONGPASS" if there else "refused") in told
        assert WRONG not in told

    @pytest.mark.parametrize(
        "settings, why",
        [
            ({"sentinels": ["127.0.0.1:1"], "master_name": "m"}, "no Sentinel names the master"),
            ({"nodes": ["127.0.0.1:1"]}, "no node answers: 127.0.0.1:1"),
        ],
        ids=["sentinel", "cluster"],
    )
    def test_required_and_nobody_to_ask(self, tmp_path, rows, settings, why):
        (tmp_path / "resources.yaml").write_text(as_yaml(rows))
        bootstrap = {
            "proxy": {"addr": f"127.0.0.1:{free_port()}"},
            "resources_file": "resources.yaml",
            "ratelimit": {"backend": "redis", "redis": {**settings, "required": True}},
        }
        (tmp_path / "stint.yaml").write_text(as_yaml(bootstrap))
        ended = run_stint("--config", tmp_path / "stint.yaml")
        told = ended.stdout + ended.stderr
        assert ended.returncode > 0
        assert why in told

    @pytest.mark.parametrize("redis", ["sentinel", "cluster"], indirect=True)
    def test_required_and_found(self, redis, start_with):
        gateway = counts(start_with(None, **redis.settings, required=True))
        assert [gateway.chat().status for _ in range(2)] == [200, 429]
        assert redis.used("api_keys/test") == 1

    @pytest.mark.parametrize("redis", ["sentinel"], indirect=True)
    def test_the_reason_is_told_with_the_decisions(self, redis, start_with):
        gateway = start_with(None, **{**redis.settings, "master_name": "another"})
        gateway.wait_log("redis is away", "No such master")
        gateway.chat()
        told = r"counting by the outage rule: .*No such master"
        until(lambda: re.search(told, gateway.log()), "it is told")

    @pytest.mark.parametrize("redis", ["cluster"], indirect=True)
    def test_a_node_of_a_cluster_is_no_server_of_its_own(self, redis, start_with):
        """Some of them have the key that is looked at first, and some have not."""
        for node in redis.nodes:
            gateway = start_with(node.url)
            gateway.wait_log("is a node of a Redis Cluster", "`nodes`")

    @pytest.mark.parametrize("redis", ["cluster"], indirect=True)
    def test_required_and_a_node_of_a_cluster(self, redis, tmp_path, rows):
        (tmp_path / "resources.yaml").write_text(as_yaml(rows))
        refused = 0
        for node in redis.nodes:
            bootstrap = {
                "proxy": {"addr": f"127.0.0.1:{free_port()}"},
                "resources_file": "resources.yaml",
                "ratelimit": {"backend": "redis", "redis": {"url": node.url, "required": True}},
            }
            (tmp_path / "stint.yaml").write_text(as_yaml(bootstrap))
            with contextlib.suppress(subprocess.TimeoutExpired):
                ended = run_stint("--config", tmp_path / "stint.yaml", timeout=4)
                assert "it is a node of a Redis Cluster" in ended.stdout + ended.stderr
                refused += 1
        assert refused == len(redis.nodes) - 1  # one has the key

    def test_required_and_there(self, redis, start_with):
        gateway = counts(start_with(redis.url, required=True))
        assert [gateway.chat().status for _ in range(2)] == [200, 429]

    def test_start_that_fails_for_another_reason(self, redis, tmp_path):
        (tmp_path / "resources.yaml").write_text("{}\n")
        settings = {
            "proxy": {"addr": f"127.0.0.1:{free_port()}"},
            "resources_file": "resources.yaml",
            "ratelimit": {"backend": "redis", "redis": {"url": redis.url}},
        }
        (tmp_path / "stint.yaml").write_text(as_yaml(settings))
        ended = run_stint("--config", tmp_path / "stint.yaml")
        assert ended.returncode == 1
        assert "_format_version" in ended.stderr


class TestLogin:
    def test_password_in_the_url(self, launch, start_with):
        redis = launch(password=SECRET)
        gateway = counts(start_with(f"redis://:{SECRET}@127.0.0.1:{redis.port}"))
        assert [gateway.chat().status for _ in range(2)] == [200, 429]
        assert redis.used("api_keys/test") == 1
        assert_secret(gateway, SECRET)

    def test_password_and_database_beside_the_url(self, launch, start_with):
        redis = launch(password=SECRET)
        gateway = counts(start_with(redis.url, password=SECRET, database=3))
        assert [gateway.chat().status for _ in range(2)] == [200, 429]
        assert redis.keys() == []
        redis.ask("SELECT", 3)
        assert redis.used("api_keys/test") == 1

    @pytest.mark.parametrize("given", [WRONG, None])
    def test_wrong_password(self, launch, start_with, given):
        redis = launch(password=SECRET)
        gateway = start_with(f"redis://{f':{given}@' if given else ''}127.0.0.1:{redis.port}")
        gateway.wait_log("must be mended", "WRONGPASS" if given else "NOAUTH")
        assert gateway.degraded()
        assert [gateway.chat().status for _ in range(2)] == [200, 429]
        mended = [line for line in gateway.log().splitlines() if "must be mended" in line]
        texts = [line.partition(" warn ")[2] for line in mended]
        assert len(texts) == len(set(texts)), "told once"
        assert_secret(gateway, SECRET, WRONG)
        # Mended in Redis: no restart is needed.
        redis.ask("CONFIG", "SET", "requirepass", given or "")
        until(lambda: not gateway.degraded(), "it counts in Redis", 2)

    def test_user_who_may_not_run_scripts(self, launch, start_with):
        redis = launch("--user", "stint", "on", f">{SECRET}", "~stint:*", "+@all", "-evalsha")
        gateway = start_with(f"redis://stint:{SECRET}@127.0.0.1:{redis.port}")
        gateway.wait_log("must be mended", "NOPERM")
        assert gateway.degraded()
        assert [gateway.chat().status for _ in range(2)] == [200, 429]
        assert_secret(gateway, SECRET)


class TestTls:
    # All that stint needs to be allowed. It does without CONFIG and INFO.
    MAY = "+@read +@write -@dangerous +evalsha +script|load +client|setname +select +time"

    @pytest.fixture
    def secure(self, launch, tmp_path):
        """A Redis that wants TLS with a client certificate, and a user; its URL, the CA, ours."""
        authority = make_certificate(tmp_path, "authority")
        server = make_certificate(tmp_path, "server", authority)
        client = make_certificate(tmp_path, "client", authority)
        port = free_port()
        launch(
            *("--tls-port", str(port), "--tls-auth-clients", "yes"),
            *("--tls-cert-file", server.cert, "--tls-key-file", server.key),
            *("--tls-ca-cert-file", authority.cert),
            *("--user", "stint", "on", f">{SECRET}", "~stint:*", *self.MAY.split()),
        )
        return f"rediss://stint:{SECRET}@127.0.0.1:{port}", authority, client

    @staticmethod
    def files(authority, client=None):
        tls = {"ca_file": str(authority.cert)}
        if client:
            tls |= {"cert_file": str(client.cert), "key_file": str(client.key)}
        return tls

    def test_known_to_each_other(self, secure, start_with):
        url, authority, client = secure
        pair = [counts(start_with(url, tls=self.files(authority, client))) for _ in range(2)]
        assert [gateway.chat().status for gateway in pair] == [200, 429]
        for gateway in pair:
            assert " warn " not in gateway.log(), gateway.log()
        assert_secret(pair[0], SECRET)

    def test_unknown_authority(self, secure, start_with, tmp_path):
        url, _, client = secure
        stranger = make_certificate(tmp_path, "stranger")
        gateway = start_with(url, tls=self.files(stranger, client))
        gateway.wait_log("certificate")
        assert gateway.degraded()
        assert [gateway.chat().status for _ in range(2)] == [200, 429]

    def test_at_a_server_without(self, redis, start_with):
        gateway = start_with(redis.url.replace("redis:", "rediss:"))
        gateway.wait_log("redis is away", "TLS with 127.0.0.1")

    @pytest.mark.parametrize("by", ["file", "environment"])
    def test_certificates_are_read_again(self, secure, launch, tmp_path, rows, by, start):
        """At SIGHUP, though the names of their files have not changed."""
        url, authority, client = secure
        ours = tmp_path / "ours.pem"
        ours.write_text(make_certificate(tmp_path, "stranger").cert.read_text())
        redis = {"url": url, "timeout_ms": 2000}
        tls = self.files(authority, client) | {"ca_file": str(ours)}
        if by == "file":
            redis["tls"] = tls
            gateway = start(rows, {"ratelimit": {"backend": "redis", "redis": redis}}, wait=False)
        else:
            names = {f"STINT_RATELIMIT__REDIS__TLS__{key.upper()}": tls[key] for key in tls}
            settings = {"ratelimit": {"backend": "redis", "redis": redis}}
            gateway = start(rows, settings, wait=False, environment=names)
        gateway.wait_ready()
        gateway.wait_log("certificate")
        assert gateway.degraded()
        ours.write_text(authority.cert.read_text())
        gateway.signal(signal.SIGHUP)
        counts(gateway)

    def test_without_a_client_certificate(self, secure, start_with):
        url, authority, _ = secure
        gateway = start_with(url, tls=self.files(authority))
        gateway.wait_log("redis is away")
        assert gateway.degraded()
        assert [gateway.chat().status for _ in range(2)] == [200, 429]

    def test_file_that_is_not_there(self, secure, tmp_path, rows):
        (tmp_path / "resources.yaml").write_text(as_yaml(rows))
        settings = {
            "proxy": {"addr": f"127.0.0.1:{free_port()}"},
            "resources_file": "resources.yaml",
            "ratelimit": {
                "backend": "redis",
                "redis": {"url": secure[0], "tls": {"ca_file": "nowhere.pem"}},
            },
        }
        (tmp_path / "stint.yaml").write_text(as_yaml(settings))
        ended = run_stint("--config", tmp_path / "stint.yaml")
        assert ended.returncode > 0
        assert "nowhere.pem" in ended.stdout + ended.stderr
        assert SECRET not in ended.stdout + ended.stderr


class TestEnvironment:
    @pytest.fixture
    def run(self, tmp_path, rows):
        """run(environment) gives the process and its port; nothing is configured by a file."""
        path = tmp_path / "resources.yaml"
        path.write_text(as_yaml(rows))
        running = []

        def run_one(environment):
            port = free_port()
            process = subprocess.Popen(
                [BINARY],
                env={
                    "PATH": os.environ["PATH"],
                    "STINT_PROXY__ADDR": f"127.0.0.1:{port}",
                    "STINT_PROXY__WORKERS": "1",
                    "STINT_OBSERVABILITY__LOG_LEVEL": "off",
                    "STINT_SHUTDOWN__MIN_DRAIN_SECS": "0",
                    "STINT_RESOURCES_FILE": str(path),
                    "STINT_RATELIMIT__BACKEND": "redis",
                    **environment,
                },
            )
            running.append(process)
            until(lambda: counted(port), "it counts in Redis")
            return port

        yield run_one
        for process in running:
            process.terminate()
        assert [process.wait(10) for process in running] == [0] * len(running)

    @pytest.mark.parametrize("name", ["STINT_RATELIMIT__REDIS__URL", "REDIS_URL", "REDIS_URLS"])
    def test_one_address(self, redis, run, name):
        ports = [run({name: redis.url}) for _ in range(2)]
        asked = {"body": chat_body(), "key": KEY}
        answers = [request(port, "POST", "/v1/chat/completions", **asked) for port in ports]
        assert [answer.status for answer in answers] == [200, 429]
        assert redis.used("api_keys/test") == 1

    def test_own_variable_goes_first(self, redis, run):
        run({"STINT_RATELIMIT__REDIS__URL": redis.url, "REDIS_URL": "redis://127.0.0.1:1"})

    def test_several_addresses(self, launch, run):
        servers = [launch() for _ in range(3)]
        urls = [server.url for server in servers]
        ports = [
            run({"REDIS_URLS": ",".join(order), "RATE_LIMIT_CONSISTENT_HASH_VNODES": "20"})
            for order in (urls, urls[::-1])
        ]
        asked = {"body": chat_body(), "key": KEY}
        answers = [request(port, "POST", "/v1/chat/completions", **asked) for port in ports]
        assert [answer.status for answer in answers] == [200, 429]
        assert sorted(server.used("api_keys/test") for server in servers) == [0, 0, 1]

    def test_no_address(self, tmp_path, rows):
        (tmp_path / "resources.yaml").write_text(as_yaml(rows))
        environment = {
            "STINT_RESOURCES_FILE": str(tmp_path / "resources.yaml"),
            "STINT_RATELIMIT__BACKEND": "redis",
        }
        ended = run_stint(environment=environment)
        assert ended.returncode > 0
        assert "ratelimit.redis" in ended.stdout + ended.stderr


def counted(port):
    try:
        answer = request(port, "GET", "/readyz")
    except OSError:
        return False
    return answer.status == 200 and not answer.json()["store"]["degraded"]
