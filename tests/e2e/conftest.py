"""What the tests share: an upstream to script, and the real program in front of it."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

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


@pytest.fixture
def redis(tmp_path):
    """A Redis of the test's own. Whatever was done, every key that is left expires by itself."""
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
        server = {"url": redis.url, "timeout_ms": timeout_ms}
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
