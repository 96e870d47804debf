"""What the tests share: an upstream to script, and the real program in front of it."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from support.gateway import Gateway, resources  # noqa: E402
from support.openai_shapes import openai_upstream  # noqa: E402
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


def stop_all(gateways):
    faults = []
    for one in gateways:
        try:
            one.stop()
        except AssertionError as fault:
            faults.append(str(fault))
    assert not faults, "\n".join(faults)
