"""What the tests share: an upstream to script, and the real program in front of it."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from support.deployments import ClusterDeployment, SentinelDeployment  # noqa: E402
from support.gateway import Gateway, resources, stop_all  # noqa: E402
from support.openai_shapes import openai_upstream  # noqa: E402
from support.poll import until  # noqa: E402
from support.redis import RedisServer  # noqa: E402
from support.upstream import MockUpstream  # noqa: E402


@pytest.fixture
def upstream():
    """Speaks OpenAI's format until told otherwise: 3 input and 5 output tokens an answer."""
    mock = MockUpstream()
    mock.always(openai_upstream())
    yield mock
    mock.stop()


@pytest.fixture
def start(tmp_path):
    """start(rows, bootstrap) gives a running gateway. All are stopped, and must end orderly."""
    running = []

    def start_one(rows, bootstrap=None, **options):
        folder = tmp_path / f"stint-{len(running)}"
        folder.mkdir()
        gateway = Gateway(folder, rows, bootstrap, **options)
        running.append(gateway)
        return gateway

    yield start_one
    stop_all(running)


@pytest.fixture
def gateway(start, upstream):
    """One without limits, in front of `upstream`."""
    return start(resources(upstream.origin))


@pytest.fixture(scope="session")
def cluster_of_masters(tmp_path_factory):
    """Three masters without replicas: whoever goes away is not replaced. Formed only once."""
    cluster = ClusterDeployment(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.stop()


@pytest.fixture
def redis(request, tmp_path):
    """A Redis of the test's own. Whatever was done, every key that is left expires by itself.

    One server, unless the test is parametrized: see support.deployments.EVERY.
    """
    kind = getattr(request, "param", "single")
    if kind == "cluster":
        server = request.getfixturevalue("cluster_of_masters")
        if not server.running():
            server.start()
        server.ask("FLUSHALL")
        server.ask("CONFIG", "RESETSTAT")
        yield server
        if server.running():
            server.assert_all_expire()
        return
    if kind == "sentinel":  # who watch it, and do not replace it
        server = SentinelDeployment(tmp_path / "sentinel", replicas=0, down_after_ms=60_000)
    else:
        server = RedisServer(tmp_path / "redis")
    yield server
    try:
        if server.running():
            server.assert_all_expire()
    finally:
        server.stop()


@pytest.fixture
def replicas(redis, start):
    """replicas(count, rows, **ratelimit) gives gateways that count in `redis` together."""

    def start_all(count, rows, environments=(), timeout_ms=2000, workers=2, **ratelimit):
        # A busy machine is no outage: tests of outages have a short time-out, others a long one.
        server = {**redis.settings, "timeout_ms": timeout_ms}
        settings = {
            "proxy": {"workers": workers},
            "ratelimit": {"backend": "redis", "redis": server, **ratelimit},
        }
        environments = [*environments, *[None] * count][:count]
        gateways = [
            start(rows, settings, wait=False, environment=environment)
            for environment in environments
        ]
        for gateway in gateways:
            gateway.wait_ready()
        for gateway in gateways:
            until(lambda: not gateway.degraded(), "it counts in Redis")
        return gateways

    return start_all
