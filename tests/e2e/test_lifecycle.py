"""Starting where a port is taken, and stopping while requests run."""

import os
import signal
import socket
import subprocess

import pytest

from support.client import Timed, request
from support.gateway import BINARY, KEY, as_yaml, chat_body, free_port, resources, run_stint
from support.openai_shapes import event, openai_upstream, stream_chunk, streamed
from support.poll import until
from support.upstream import HANG, Gate


class TestTakenPort:
    def start_at(self, folder, upstream, **addresses):
        (folder / "resources.yaml").write_text(as_yaml(resources(upstream.origin)))
        settings = {
            "proxy": {"addr": addresses.get("proxy", f"127.0.0.1:{free_port()}")},
            "resources_file": "resources.yaml",
        }
        if "metrics" in addresses:
            settings["observability"] = {"metrics": {"prometheus": {"addr": addresses["metrics"]}}}
        (folder / "stint.yaml").write_text(as_yaml(settings))
        return run_stint("--config", folder / "stint.yaml")

    @pytest.mark.parametrize("listener", ["proxy", "metrics"])
    def test_by_another_program(self, tmp_path, upstream, listener):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            ended = self.start_at(tmp_path, upstream, **{listener: address})
        assert ended.returncode > 0
        assert "address already in use" in ended.stdout + ended.stderr
        assert address in ended.stdout + ended.stderr

    def test_by_another_stint(self, tmp_path, gateway, upstream):
        ended = self.start_at(tmp_path, upstream, proxy=f"127.0.0.1:{gateway.port}")
        assert ended.returncode > 0
        assert "address already in use" in ended.stdout + ended.stderr
        assert gateway.chat().status == 200

    def test_by_one_that_shares_ports(self, tmp_path, upstream):
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            ended = self.start_at(tmp_path, upstream, proxy=address)
        assert ended.returncode > 0
        assert "address already in use" in ended.stdout + ended.stderr

    def test_restart_on_the_same_port_at_once(self, start, gateway, upstream):
        """Connections of the one before that are still in TIME_WAIT do not count as taken."""
        assert gateway.chat().status == 200
        gateway.stop()
        again = {"proxy": {"addr": f"127.0.0.1:{gateway.port}"}}
        second = start(resources(upstream.origin), again, wait=False)
        second.port = gateway.port
        until(lambda: second.readyz() == 200, "it serves on the old port")


class TestStop:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_at_rest(self, gateway, number):
        assert gateway.chat().status == 200
        with gateway.connect() as idle:
            idle.ask("GET", "/livez").answer().read()
            with Timed() as took:
                gateway.signal(number)
                assert gateway.wait_exit() == 0
            assert took.seconds < 3
            assert idle.closed()

    def test_not_ready_and_still_serving_at_first(self, start, upstream):
        gateway = start(resources(upstream.origin), {"shutdown": {"min_drain_secs": 2}})
        gateway.signal(signal.SIGTERM)
        until(lambda: gateway.readyz() == 503, "/readyz says so", 1)
        assert gateway.request("GET", "/readyz").json()["status"] == "stopping"
        # New connections are served until the grace for load balancers has passed.
        assert gateway.chat().status == 200
        assert gateway.wait_exit() == 0

    def test_running_stream_ends_by_itself(self, start, upstream):
        gateway = start(resources(upstream.origin, key_limit={"concurrency": 1}))
        gate = Gate()
        parts = [event(stream_chunk("One")), event(stream_chunk("Two")), event("[DONE]")]
        upstream.once(*streamed(parts[0], gate, *parts[1:]))
        stream = gateway.start_stream()
        stream.read_until(b"One")
        gateway.signal(signal.SIGTERM)
        until(lambda: gateway.readyz() is None, "nobody new is let in", 2)
        assert gateway.process.poll() is None
        gate.open()
        assert stream.read().body == b"".join(parts)
        assert gateway.wait_exit() == 0

    def test_request_in_flight_is_answered_and_its_connection_closed(self, gateway, upstream):
        gate = Gate()
        upstream.once(gate, openai_upstream())
        with gateway.connect() as connection:
            connection.ask("POST", "/v1/chat/completions", body=chat_body(), key=KEY)
            upstream.wait_for(1)
            gateway.signal(signal.SIGTERM)
            until(lambda: gateway.readyz() is None, "nobody new is let in", 2)
            gate.open()
            answer = connection.answer().read()
            assert answer.status == 200
            assert answer.headers["connection"].lower() == "close"
            assert connection.closed()
        assert gateway.wait_exit() == 0

    def test_what_takes_too_long_is_ended_as_if_its_client_had_gone(self, start, upstream):
        gateway = start(resources(upstream.origin), {"shutdown": {"max_drain_secs": 1}})
        upstream.once(*streamed(event(stream_chunk("One")), HANG))
        stream = gateway.start_stream()
        stream.read_until(b"One")
        with Timed() as took:
            gateway.signal(signal.SIGTERM)
            assert gateway.wait_exit() == 0
        assert 0.5 < took.seconds < 4
        upstream.received[0].wait_closed(1)
        assert b"[DONE]" not in stream.body

    def test_metrics_can_be_read_to_the_end(self, start, upstream):
        gateway = start(resources(upstream.origin), {"shutdown": {"max_drain_secs": 4}})
        gate = Gate()
        upstream.once(*streamed(event(stream_chunk("One")), gate, event("[DONE]")))
        stream = gateway.start_stream()
        stream.read_until(b"One")
        gateway.signal(signal.SIGTERM)
        until(lambda: gateway.readyz() is None, "nobody new is let in", 2)
        answer = request(gateway.metrics_port, "GET", "/metrics")
        assert b"stint_requests_in_flight 1" in answer.body
        gate.open()
        stream.read()
        assert gateway.wait_exit() == 0


def test_all_settings_from_the_environment(upstream, tmp_path):
    """As a container is configured: no bootstrap file at all."""
    path = tmp_path / "resources.yaml"
    path.write_text(as_yaml(resources(upstream.origin)))
    port = free_port()
    process = subprocess.Popen(
        [BINARY],
        env={
            "PATH": os.environ["PATH"],
            "STINT_PROXY__ADDR": f"127.0.0.1:{port}",
            "STINT_PROXY__WORKERS": "1",
            "STINT_OBSERVABILITY__LOG_LEVEL": "off",
            "STINT_OBSERVABILITY__ACCESS_LOG": "false",
            "STINT_SHUTDOWN__MIN_DRAIN_SECS": "0",
            "STINT_RESOURCES_FILE": str(path),
        },
    )
    try:
        until(lambda: ready(port), "it serves")
        body = chat_body()
        assert request(port, "POST", "/v1/chat/completions", body=body, key=KEY).status == 200
    finally:
        process.terminate()
    assert process.wait(10) == 0


def ready(port):
    try:
        return request(port, "GET", "/readyz").status == 200
    except OSError:
        return False
